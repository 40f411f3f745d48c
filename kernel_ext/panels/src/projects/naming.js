/** A name to type in place: for something new, or another name for something. */

import { Asker } from "../link/asker.js";
import { button, form, input } from "../lib/controls.js";
import { h } from "../lib/dom.js";

export class Naming {
  /**
   * @param {{channel: import("../link/channel.js").Channel, announce: (text: string) => void}} desk
   * @param {{label: string, value?: string, what: string}} words what the button says, the name now, what is named
   * @param {(name: string) => [string, object]} request the operation and its arguments
   * @param {(outcome: any|null) => void} onDone with what came out, or null when it was given up
   */
  constructor(desk, { label, value = "", what }, request, onDone) {
    this.asker = new Asker(desk);
    this.request = request;
    this.onDone = onDone;
    this.name = input(value, {
      class: "wb-input wb-grow",
      maxlength: 200,
      placeholder: what,
      "aria-label": what,
      required: true,
    });
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, label);
    this.element = form(
      { class: "wb-stack" },
      { submit: () => this.run(), escape: () => onDone(null) },
      h(
        "div",
        { class: "wb-line" },
        this.name,
        this.submit,
        button("Cancel", "wb-button", () => onDone(null)),
      ),
      this.asker.problem,
    );
  }

  focus() {
    this.name.focus();
    this.name.select();
  }

  async run() {
    const outcome = await this.asker.ask(...this.request(this.name.value.trim()), this.submit);
    if (outcome) this.onDone(outcome);
    else this.name.focus();
  }
}

/** A form for a name: of something new, or a new name of something. */

import { form, formButtons, input } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";

export class NameForm {
  /**
   * @param {{channel: import("../link/channel.js").Channel, announce: (text: string) => void}} desk
   * @param {{label: string, value?: string, field: string}} words of the submit button, the name now, of the field
   * @param {(name: string) => [string, object]} request makes the operation and its arguments
   * @param {(outcome: any|null) => void} onDone called with the result, or with null when it was cancelled
   */
  constructor(desk, { label, value = "", field }, request, onDone) {
    this.requests = new RequestRunner(desk);
    this.request = request;
    this.onDone = onDone;
    this.name = input(value, {
      class: "wb-input wb-grow",
      maxlength: 200,
      placeholder: field,
      "aria-label": field,
      required: true,
    });
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, label);
    const cancel = () => onDone(null);
    this.element = form(
      { class: "wb-stack" },
      { submit: () => this.run(), escape: cancel },
      formButtons(this.submit, cancel, this.name),
      this.requests.errorBox,
    );
  }

  focus() {
    this.name.focus();
    this.name.select();
  }

  async run() {
    const outcome = await this.requests.run(...this.request(this.name.value.trim()), this.submit);
    if (outcome) this.onDone(outcome);
    else this.name.focus();
  }
}

/** A form to join a network: the node to contact first, and the name of this one. */

import { enable, field, form, formButtons, input } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";

export class JoinForm {
  /** @param {any} desk @param {any} network its row: what was used the last time @param {(joined: boolean) => void} onDone */
  constructor(desk, network, onDone) {
    this.desk = desk;
    this.onDone = onDone;
    this.requests = new RequestRunner(desk);
    this.url = input(network?.first_contact?.url ?? "", {
      maxlength: 2_000,
      placeholder: "URL that ends with /koi-net",
    });
    this.rid = input(network?.first_contact?.rid ?? "", {
      class: "wb-input wb-mono",
      maxlength: 300,
      placeholder: "orn:koi-net.node:…",
    });
    this.name = input(network?.name ?? "", { maxlength: 100, placeholder: "lab" });
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Join");
    const about =
      "Leave the address empty if this node is the first one: others then contact it. The RID of the first contact, if you know it, makes sure that it is that node which answers.";
    const cancel = () => onDone(false);
    this.element = form(
      { class: "wb-box wb-stack wb-roomy", "aria-label": "Join a network" },
      { submit: () => this.run(), escape: cancel },
      h(
        "div",
        { class: "wb-fields wb-fields-3" },
        field("Address of the first contact", this.url),
        field("RID of the first contact (optional)", this.rid),
        field("Name of this node", this.name),
      ),
      h("p", { class: "wb-label" }, about),
      formButtons(this.submit, cancel),
      this.requests.errorBox,
    );
  }

  focus() {
    this.url.focus();
  }

  /** @param {boolean} enabled whether requests can be sent */
  update(enabled) {
    if (!this.requests.busy) enable(enabled, this.submit);
  }

  async run() {
    const typed = { first_contact: this.url, first_contact_rid: this.rid, name: this.name };
    const given = Object.entries(typed).map(([name, control]) => [name, control.value.trim()]);
    const args = Object.fromEntries(given.filter(([, value]) => value));
    if (await this.requests.run("join_network", args, this.submit, "Joining…")) this.onDone(true);
  }
}

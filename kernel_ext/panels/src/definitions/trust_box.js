/** Whether a definition may be used: what of it the person has not trusted yet, and the question about it. */

import { ApprovalSlot } from "../inbox/approval_slot.js";
import { message } from "../lib/blocks.js";
import { button } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { shortList } from "../lib/format.js";
import { RequestRunner } from "../link/request_runner.js";

export class TrustBox {
  /** @param {any} desk @param {() => void} onChange trust was given, or refused */
  constructor(desk, onChange) {
    this.desk = desk;
    this.onChange = onChange;
    this.requests = new RequestRunner(desk);
    this.text = h("div", {});
    this.review = button("Review…", "wb-button", () => this.ask());
    this.note = h("div", { class: "wb-stack", hidden: true }, this.text, this.review, this.requests.errorBox);
    this.slot = new ApprovalSlot(desk, () => {});
    this.element = h("div", { class: "wb-stack" }, this.note, this.slot.element);
    /** The id of the pending approval. */
    this.pending = null;
  }

  /** Show nothing until `update`. */
  clear() {
    this.slot.clear();
    this.pending = null;
    this.note.hidden = true;
    this.requests.clearError();
  }

  /** @param {any} definition as it was read @param {boolean} enabled whether decisions can be sent @param {number} now in ms */
  update({ info, trust }, enabled, now) {
    this.path = info.path;
    const pending = [...this.desk.store.tables.approvals.values()].find(isAbout(info.id));
    this.slot.show(pending, () => enabled, now);
    if (this.pending !== null && !pending) this.onChange();
    this.pending = pending?.id ?? null;
    this.note.hidden = trust.trusted || Boolean(pending);
    if (!this.note.hidden) this.draw(trust);
  }

  draw({ needs, refusal }) {
    const names = shortList(needs.filter(({ trusted }) => !trusted).map(({ name }) => name));
    const why = refusal ? ` You have refused it: ${refusal}.` : "";
    const text = `You have not trusted ${names}. It is not used before you do.${why}`;
    if (text === this.drawn) return;
    this.drawn = text;
    this.text.replaceChildren(message("shield", text));
  }

  async ask() {
    const outcome = await this.requests.run("agent_request_trust", { agentTarget: this.path }, this.review, "Asking…");
    if (outcome) this.onChange();
  }
}

/** Whether an approval asks to trust a definition. */
function isAbout(id) {
  return ({ kind, subject }) => kind === "trust" && subject === `definition:${id}`;
}

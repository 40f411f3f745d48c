/** Deciding many registrations at once: who is picked, what all of them get, one answer for each. */

import { Asker } from "../link/asker.js";
import { CodedError } from "../link/channel.js";
import { button, checkbox, enable, form, input } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { counted } from "../lib/format.js";
import { GrantFields } from "../agents/grant.js";

export class Bulk {
  /**
   * @param {{store: import("../link/store.js").Store, channel: import("../link/channel.js").Channel,
   *   announce: (text: string) => void}} desk
   * @param {() => import("./card.js").Card[]} cards those that can be picked now
   */
  constructor(desk, cards) {
    this.desk = desk;
    this.cards = cards;
    this.asker = new Asker(desk);
    /** @type {GrantFields|null} */
    this.fields = null;
    this.all = checkbox("Select all", (on) => this.pickAll(on));
    this.number = h("span", { class: "wb-muted wb-grow" });
    this.yes = button("Admit", "wb-button wb-primary", () => this.approve());
    this.more = button("Choose for all…", "wb-button", () => this.toggleDetails());
    this.no = button("Reject…", "wb-button", () => this.toggleReject(true));
    for (const one of [this.more, this.no]) one.setAttribute("aria-expanded", "false");
    this.actions = h("div", { class: "wb-card-actions" }, this.yes, this.more, this.no);
    this.details = h("div", {
      class: "wb-box wb-stack wb-roomy",
      hidden: true,
      on: { keydown: (event) => event.key === "Escape" && this.toggleDetails(false) },
    });
    this.form = this.rejectForm();
    this.element = h(
      "div",
      { class: "wb-bulk wb-stack", role: "group", "aria-label": "Decide many", hidden: true },
      h("div", { class: "wb-bulk-row" }, this.all.element, this.number, this.actions),
      this.details,
      this.form,
      this.asker.problem,
    );
  }

  rejectForm() {
    this.reason = input("", {
      class: "wb-input wb-grow",
      maxlength: 1000,
      placeholder: "Reason (optional; all of them are told)",
      "aria-label": "Reason for rejecting those selected",
    });
    this.really = h("button", { class: "wb-button wb-danger", type: "submit" }, "Reject");
    const cancel = button("Cancel", "wb-button", () => this.toggleReject(false));
    const on = { submit: () => this.reject(), escape: () => this.toggleReject(false) };
    return form({ class: "wb-line wb-reject", hidden: true }, on, this.reason, this.really, cancel);
  }

  get picked() {
    return this.cards().filter((card) => card.pick.checked);
  }

  /** Bring it up to date: it is there as soon as two registrations wait. @param {boolean} [enabled] whether decisions can be sent */
  update(enabled = this.enabled) {
    this.enabled = enabled;
    const cards = this.cards();
    const useful = cards.length > 1;
    for (const card of cards) {
      card.pick.hidden = !useful;
      if (!useful) card.pick.checked = false;
    }
    const number = this.picked.length;
    this.element.hidden = !useful;
    this.all.box.checked = useful && number === cards.length;
    this.all.box.indeterminate = number > 0 && number < cards.length;
    setText(this.number, number ? `${number.toLocaleString("en")} of ${counted(cards.length, "agent")} selected` : "");
    this.actions.hidden = number === 0;
    if (!number) this.close();
    if (!this.asker.sending) this.label(number);
    enable(enabled && !this.asker.sending, this.yes, this.no, this.really);
    this.fields?.refresh();
  }

  label(number) {
    setText(this.yes, `Admit ${number.toLocaleString("en")}`);
    setText(this.really, `Reject ${number.toLocaleString("en")}`);
  }

  pickAll(on) {
    for (const card of this.cards()) card.pick.checked = on;
    this.update();
  }

  close() {
    this.details.hidden = true;
    this.form.hidden = true;
    for (const one of [this.more, this.no]) one.setAttribute("aria-expanded", "false");
  }

  toggleDetails(open = this.details.hidden) {
    if (open) {
      this.fields = new GrantFields(this.desk.store.tables, {}, "As proposed");
      this.details.replaceChildren(this.fields.element);
    }
    this.details.hidden = !open;
    this.more.setAttribute("aria-expanded", String(open));
    if (open) this.fields.first.focus();
    else this.more.focus();
  }

  toggleReject(open) {
    this.form.hidden = !open;
    this.no.setAttribute("aria-expanded", String(open));
    if (open) this.reason.focus();
    else this.no.focus();
  }

  approve() {
    const choices = this.details.hidden ? {} : this.fields.choices();
    return this.decide("approve_many", { choices }, this.yes, "Admitting…");
  }

  reject() {
    return this.decide("reject_many", { reason: this.reason.value.trim() }, this.really, "Rejecting…");
  }

  async decide(op, args, pressed, busy) {
    const cards = this.picked;
    if (!cards.length || this.asker.sending) return;
    const approval_ids = cards.map((card) => card.approval.id);
    for (const card of cards) card.begin();
    const outcome = await this.asker.ask(op, { approval_ids, ...args }, pressed, busy);
    const decisions = new Map((outcome?.decisions ?? []).map((one) => [one.approval_id, one]));
    for (const card of cards) settle(card, decisions.get(card.approval.id), op === "approve_many");
    if (outcome) {
      this.close();
      this.desk.announce(told(outcome.decisions, op === "approve_many"));
    }
    this.update();
  }
}

function settle(card, decision, yes) {
  if (decision?.ok) card.decided(yes, decision.outcome);
  else if (decision) card.refused(new CodedError(decision.error), yes ? "approve" : "reject");
  else card.again();
}

function told(decisions, yes) {
  const done = decisions.filter(({ ok }) => ok).length;
  const failed = decisions.length - done;
  return `${done} ${yes ? "admitted" : "rejected"}${failed ? `, ${failed} refused` : ""}.`;
}

/** Deciding many registrations at once: which are selected, one grant or reason for all, and a result for each. */

import { GrantFields } from "../agents/grant.js";
import { button, checkbox, enable, form, formButtons, input } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { CodedError } from "../link/channel.js";
import { RequestRunner } from "../link/request_runner.js";

export class BulkDecision {
  /**
   * @param {{store: import("../link/store.js").Store, channel: import("../link/channel.js").Channel,
   *   announce: (text: string) => void}} desk
   * @param {() => import("./card.js").ApprovalCard[]} cards that can be selected now
   */
  constructor(desk, cards) {
    this.desk = desk;
    this.cards = cards;
    this.requests = new RequestRunner(desk);
    /** @type {GrantFields|null} */
    this.fields = null;
    this.selectAll = checkbox("Select all", (on) => this.onSelectAll(on));
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.approveButton = button("Admit", "wb-button wb-primary", () => this.approve());
    this.detailsButton = button("Details for all…", "wb-button", () => this.toggleDetails());
    this.rejectButton = button("Reject…", "wb-button", () => this.toggleReject(true));
    for (const opener of [this.detailsButton, this.rejectButton]) opener.setAttribute("aria-expanded", "false");
    const buttons = [this.approveButton, this.detailsButton, this.rejectButton];
    this.actions = h("div", { class: "wb-card-actions" }, ...buttons);
    const onKey = (event) => event.key === "Escape" && this.toggleDetails(false);
    this.details = h("div", { class: "wb-box", hidden: true, on: { keydown: onKey } });
    this.form = this.rejectForm();
    this.element = h(
      "div",
      { class: "wb-bulk wb-stack", role: "group", "aria-label": "Decide many at once", hidden: true },
      h("div", { class: "wb-bulk-row" }, this.selectAll.element, this.summary, this.actions),
      this.details,
      this.form,
      this.requests.errorBox,
    );
  }

  rejectForm() {
    this.reason = input("", {
      class: "wb-input wb-grow",
      maxlength: 1000,
      placeholder: "Reason (optional; sent to all of them)",
      "aria-label": "Reason for rejecting the selected agents",
    });
    this.confirmReject = h("button", { class: "wb-button wb-danger", type: "submit" }, "Reject");
    const close = () => this.toggleReject(false);
    const on = { submit: () => this.reject(), escape: close };
    return form({ hidden: true }, on, formButtons(this.confirmReject, close, this.reason));
  }

  get selected() {
    return this.cards().filter((card) => card.checkbox.checked);
  }

  /** Bring it up to date. It is shown when at least two registrations wait. @param {boolean} [enabled] whether decisions can be sent */
  update(enabled = this.enabled) {
    this.enabled = enabled;
    const cards = this.cards();
    const useful = cards.length > 1;
    for (const card of cards) {
      card.checkbox.hidden = !useful;
      if (!useful) card.checkbox.checked = false;
    }
    const count = this.selected.length;
    this.element.hidden = !useful;
    this.selectAll.box.checked = useful && count === cards.length;
    this.selectAll.box.indeterminate = count > 0 && count < cards.length;
    setText(this.summary, count ? `${count.toLocaleString("en")} of ${plural(cards.length, "agent")} selected` : "");
    this.actions.hidden = count === 0;
    if (!count) this.close();
    if (!this.requests.busy) this.drawLabels(count);
    enable(enabled && !this.requests.busy, this.approveButton, this.rejectButton, this.confirmReject);
    this.fields?.refresh();
  }

  drawLabels(count) {
    setText(this.approveButton, `Admit ${count.toLocaleString("en")}`);
    setText(this.confirmReject, `Reject ${count.toLocaleString("en")}`);
  }

  onSelectAll(on) {
    for (const card of this.cards()) card.checkbox.checked = on;
    this.update();
  }

  close() {
    this.details.hidden = true;
    this.form.hidden = true;
    for (const opener of [this.detailsButton, this.rejectButton]) opener.setAttribute("aria-expanded", "false");
  }

  toggleDetails(open = this.details.hidden) {
    if (open) {
      this.fields = new GrantFields(this.desk.store.tables, {}, "As requested");
      this.details.replaceChildren(this.fields.element);
    }
    this.details.hidden = !open;
    this.detailsButton.setAttribute("aria-expanded", String(open));
    if (open) this.fields.first.focus();
    else this.detailsButton.focus();
  }

  toggleReject(open) {
    this.form.hidden = !open;
    this.rejectButton.setAttribute("aria-expanded", String(open));
    if (open) this.reason.focus();
    else this.rejectButton.focus();
  }

  approve() {
    const choices = this.details.hidden ? {} : this.fields.choices();
    return this.decide("approve_many", { choices }, this.approveButton, "Admitting…");
  }

  reject() {
    return this.decide("reject_many", { reason: this.reason.value.trim() }, this.confirmReject, "Rejecting…");
  }

  async decide(op, args, pressed, label) {
    const cards = this.selected;
    if (!cards.length || this.requests.busy) return;
    const approved = op === "approve_many";
    const approval_ids = cards.map((card) => card.approval.id);
    for (const card of cards) card.begin();
    const outcome = await this.requests.run(op, { approval_ids, ...args }, pressed, label);
    const decisions = new Map((outcome?.decisions ?? []).map((decision) => [decision.approval_id, decision]));
    for (const card of cards) finish(card, decisions.get(card.approval.id), approved);
    if (outcome) {
      this.close();
      this.desk.announce(summaryOf(outcome.decisions, approved));
    }
    this.update();
  }
}

function finish(card, decision, approved) {
  if (decision?.ok) card.onDecided(approved, decision.outcome);
  else if (decision) card.onRefused(new CodedError(decision.error), approved ? "approve" : "reject");
  else card.reset();
}

function summaryOf(decisions, approved) {
  const done = decisions.filter(({ ok }) => ok).length;
  const failed = decisions.length - done;
  return `${done} ${approved ? "admitted" : "rejected"}${failed ? `, ${failed} failed` : ""}.`;
}

/** One question to the person: what it is, the two answers, and what became of it. */

import { Asker } from "../link/asker.js";
import { Confirm } from "../lib/confirm.js";
import { button, checkbox, form } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { age } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { message } from "../lib/message.js";
import { integration } from "../integration/question.js";
import { registration } from "./registration.js";

/**
 * How approvals of one kind look and what saying yes is called.
 * @typedef {object} Kind
 * @property {string} icon
 * @property {string} label
 * @property {string | ((approval: any) => string)} primary what the button says
 * @property {string} busy what it says meanwhile
 * @property {(approval: any) => string} title
 * @property {(approval: any) => string} origin
 * @property {(approval: any, tables: import("../link/store.js").Tables) => (Node|string|null)[]} summary what saying yes
 *   at once would do
 * @property {(approval: any) => string} [facts] what else there is to know, in a line
 * @property {(approval: any, tables: import("../link/store.js").Tables) => string|null|(string|null)[]} [warning]
 * @property {() => {element: HTMLElement, update: (approval: any) => void}} [live] what goes on meanwhile
 * @property {(approval: any) => {label: string, why: string, choices: object}|null} [doubt] what saying yes is asked
 *   once more for, and the choices that come with it
 * @property {(outcome: any, approval: any, tables: import("../link/store.js").Tables) => string} done
 * @property {(approval: any, tables: import("../link/store.js").Tables) => boolean} careful the answer is likely to be no: yes is not proposed
 * @property {(approval: any, tables: import("../link/store.js").Tables) => object} [choices] those of saying yes at once
 * @property {(approval: any, tables: import("../link/store.js").Tables) => Details} [details]
 *
 * @typedef {{element: HTMLElement, first: HTMLElement, choices: () => object, refresh?: () => void,
 *   fieldOf: (error: {code: string}) => HTMLElement|null}} Details
 */

/** @type {Kind} */
const anything = {
  icon: "question",
  label: "question",
  primary: "Approve",
  busy: "Approving…",
  title: ({ subject }) => subject,
  origin: ({ requester }) => `asked by ${requester}`,
  summary: ({ kind }) => [kind],
  done: () => "Approved.",
  careful: () => false,
};

const KINDS = { registration, integration };

export class Card {
  /**
   * @param {any} approval
   * @param {{channel: import("../link/channel.js").Channel, announce: (text: string) => void,
   *   tables: import("../link/store.js").Tables, onPicked: () => void, onSettled: (card: Card) => void,
   *   onDismissed: (card: Card) => void}} desk
   */
  constructor(approval, desk) {
    this.approval = approval;
    this.desk = desk;
    this.kind = KINDS[approval.kind] ?? anything;
    /** @type {"waiting"|"sending"|"settled"} */
    this.state = "waiting";
    /** @type {Details|null} */
    this.details = null;
    this.asker = new Asker({ channel: desk.channel, announce: (text) => desk.announce(`${this.name}: ${text}`) });
    this.problem = this.asker.problem;
    this.build();
  }

  get name() {
    return this.kind.title(this.approval);
  }

  /** Whether the person is in the middle of something here. */
  get touched() {
    return (
      this.state === "sending" ||
      !this.form.hidden ||
      this.asked.hasChildNodes() ||
      Boolean(this.details && !this.details.element.hidden)
    );
  }

  build() {
    const { approval, kind } = this;
    const titleId = freshId("title");
    this.age = h("span", {});
    this.head = h(
      "div",
      { class: "wb-card-head" },
      h("span", { class: "wb-strong wb-wrap", id: titleId, title: this.name }, this.name),
      h("span", { class: "wb-muted" }, `${kind.label} · ${kind.origin(approval)} · `, this.age),
    );
    this.summary = h("div", { class: "wb-card-summary" }, ...kind.summary(approval, this.desk.tables));
    const facts = kind.facts?.(approval);
    this.facts = h("div", { class: "wb-card-summary wb-cut", title: facts, hidden: !facts }, facts);
    this.live = kind.live?.();
    this.warning = h("div", {});
    this.result = h("div", { class: "wb-message", tabindex: -1, hidden: true });
    this.body = h(
      "div",
      { class: "wb-card-body" },
      this.head,
      this.summary,
      this.facts,
      this.warning,
      this.live?.element,
      this.result,
    );
    this.asked = h("div", {});
    this.form = this.rejectForm();
    this.pick = checkbox(`Select ${this.name}`, () => this.desk.onPicked(), false).box;
    this.pick.hidden = true;
    this.element = h(
      "li",
      { class: "wb-card wb-stack", "aria-labelledby": titleId, tabindex: -1 },
      h("div", { class: "wb-card-row" }, this.pick, icon(kind.icon), this.body, this.buttons()),
      this.form,
      this.asked,
      this.problem,
    );
    this.draw();
  }

  /** Take what is known now, and show what may have changed. @param {any} approval */
  take(approval) {
    if (approval === this.approval || this.state === "settled") return;
    this.approval = approval;
    this.renew();
  }

  draw() {
    const { approval, kind } = this;
    const label = typeof kind.primary === "string" ? kind.primary : kind.primary(approval);
    if (this.state === "waiting") setText(this.yes, label);
    this.yes.setAttribute("aria-label", `${label}: ${this.name}`);
    this.yes.classList.toggle("wb-primary", !kind.careful(approval, this.desk.tables));
    const warnings = [kind.warning?.(approval, this.desk.tables)].flat().filter(Boolean);
    if (warnings.join("\n") !== this.warned)
      this.warning.replaceChildren(...warnings.map((text) => message("warning", text)));
    this.warned = warnings.join("\n");
    this.live?.update(approval);
  }

  buttons() {
    const { kind } = this;
    this.yes = button("", "wb-button", () => this.approve());
    this.more = kind.details ? button("Details…", "wb-button", () => this.toggleDetails()) : null;
    this.more?.setAttribute("aria-expanded", "false");
    this.no = button("Reject…", "wb-button", () => this.toggleReject(true));
    this.no.setAttribute("aria-expanded", "false");
    for (const one of [this.more, this.no]) one?.setAttribute("aria-label", `${one.textContent} ${this.name}`);
    this.actions = h("div", { class: "wb-card-actions" }, this.yes, this.more, this.no);
    return this.actions;
  }

  rejectForm() {
    this.reason = h("input", {
      class: "wb-input wb-grow",
      type: "text",
      maxlength: 1000,
      placeholder: "Reason (optional; the asker is told)",
      "aria-label": `Reason for rejecting ${this.name}`,
    });
    this.really = h("button", { class: "wb-button wb-danger", type: "submit" }, "Reject");
    this.cancel = button("Cancel", "wb-button", () => this.toggleReject(false));
    return form(
      { class: "wb-line wb-reject", hidden: true },
      { submit: () => this.reject(), escape: () => this.toggleReject(false) },
      this.reason,
      this.really,
      this.cancel,
    );
  }

  toggleDetails(open = this.more.getAttribute("aria-expanded") !== "true") {
    if (open && !this.details) {
      this.details = this.kind.details(this.approval, this.desk.tables);
      this.details.element.addEventListener("keydown", (event) => this.onDetailsKey(event));
      this.element.insertBefore(this.details.element, this.form);
    }
    if (this.details) this.details.element.hidden = !open;
    this.more.setAttribute("aria-expanded", String(open));
    if (open) this.details.first.focus();
    else this.more.focus();
  }

  onDetailsKey(event) {
    if (event.key === "Escape") this.toggleDetails(false);
    if (event.key === "Enter" && event.target.matches("input")) this.approve();
  }

  toggleReject(open) {
    this.form.hidden = !open;
    this.no.setAttribute("aria-expanded", String(open));
    if (open) this.reason.focus();
    else this.no.focus();
  }

  approve() {
    const doubt = this.kind.doubt?.(this.approval);
    if (doubt) return this.askAgain(doubt);
    const open = this.details && !this.details.element.hidden;
    const choices = open ? this.details.choices() : (this.kind.choices?.(this.approval, this.desk.tables) ?? {});
    return this.decide("approve", { approval_id: this.approval.id, choices }, this.yes, this.kind.busy);
  }

  askAgain({ label, why, choices }) {
    const close = () => {
      this.asked.replaceChildren();
      this.yes.focus();
    };
    const args = { approval_id: this.approval.id, choices };
    const question = new Confirm(
      { label, why },
      (_, pressed) => this.decide("approve", args, pressed, this.kind.busy),
      close,
    );
    this.asked.replaceChildren(question.element);
    question.focus();
  }

  reject() {
    const args = { approval_id: this.approval.id, reason: this.reason.value.trim() };
    return this.decide("reject", args, this.really, "Rejecting…");
  }

  async decide(op, args, pressed, busy) {
    if (this.state !== "waiting") return;
    this.state = "sending";
    const label = pressed.textContent;
    pressed.textContent = busy;
    this.asker.clear();
    this.refresh(this.enabled);
    try {
      const { outcome } = await this.asker.send(op, args);
      this.decided(op === "approve", outcome);
    } catch (error) {
      this.refused(error, op);
    } finally {
      pressed.textContent = label;
      if (this.state === "waiting") this.draw();
    }
  }

  /** It is decided among others: nothing here can be pressed until `decided` or `refused`. */
  begin() {
    this.state = "sending";
    this.asker.clear();
    this.refresh(this.enabled);
  }

  /** It was not decided after all: it can be asked again. */
  again() {
    this.state = "waiting";
    this.refresh(this.enabled);
  }

  /** @param {boolean} yes @param {any} outcome what the decision led to */
  decided(yes, outcome) {
    this.settle(yes ? this.kind.done(outcome, this.approval, this.desk.tables) : "Rejected.", yes);
  }

  /** The decision was refused: say why, and where. */
  refused(error, op) {
    if (error.code === "ALREADY_DECIDED") {
      this.settle("Decided elsewhere; nothing was changed.", false);
      return;
    }
    this.again();
    this.asker.show(error);
    this.pointAt(error, op);
  }

  pointAt(error, op) {
    for (const input of this.element.querySelectorAll("[aria-invalid]")) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
    const open = this.details && !this.details.element.hidden;
    const about = op === "approve" && open ? this.details.fieldOf(error) : null;
    if (!about) return;
    about.setAttribute("aria-invalid", "true");
    about.setAttribute("aria-describedby", this.problem.id);
    about.focus();
  }

  /** Say what became of it; the buttons go. */
  settle(text, good) {
    const focused = this.element.contains(document.activeElement);
    this.state = "settled";
    this.form.hidden = true;
    this.asked.replaceChildren();
    this.problem.hidden = true;
    if (this.details) this.details.element.hidden = true;
    this.actions.hidden = true;
    this.summary.hidden = true;
    this.facts.hidden = true;
    this.warning.hidden = true;
    if (this.live) this.live.element.hidden = true;
    this.pick.checked = false;
    this.pick.hidden = true;
    this.result.replaceChildren(icon(good ? "completed" : "cancelled"), h("span", {}, text));
    this.result.hidden = false;
    this.element.classList.add("wb-settled");
    if (focused) this.result.focus();
    this.desk.announce(`${this.name}: ${text}`);
    this.desk.onSettled(this);
  }

  /** The question is closed, but what went wrong is still to be read: it stays until it is dismissed. */
  settleWithProblem() {
    const focused = this.element.contains(document.activeElement);
    this.state = "settled";
    this.form.hidden = true;
    this.asked.replaceChildren();
    if (this.details) this.details.element.hidden = true;
    this.warning.hidden = true;
    const dismiss = button("Dismiss", "wb-button", () => this.desk.onDismissed(this));
    dismiss.setAttribute("aria-label", `Dismiss: ${this.name}`);
    this.actions.replaceChildren(dismiss);
    if (focused) this.element.focus();
  }

  /** @param {number} now in ms */
  tick(now) {
    const waited = age(this.approval.created_at, now);
    setText(this.age, waited === "just now" ? waited : `waiting ${waited}`);
  }

  /** @param {boolean} enabled whether decisions can be sent */
  refresh(enabled) {
    this.enabled = enabled;
    if (this.state === "waiting") this.renew();
    const off = !enabled || this.state === "sending";
    // Sending keeps the focus where it is: the button says so, but is not taken away.
    for (const one of [this.yes, this.no, this.really]) one.setAttribute("aria-disabled", String(off));
  }
  /** What saying yes would do may have changed with what was decided elsewhere. */
  renew() {
    this.draw();
    const fresh = h("div", {}, ...this.kind.summary(this.approval, this.desk.tables));
    if (fresh.textContent !== this.summary.textContent) this.summary.replaceChildren(...fresh.childNodes);
    this.details?.refresh?.();
  }
}

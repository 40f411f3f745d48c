/** One approval: what is asked, the buttons to approve or reject, and what came of it. */

import { message } from "../lib/blocks.js";
import { askIn } from "../lib/confirm.js";
import { button, checkbox, form, formButtons, input } from "../lib/controls.js";
import { freshId, h, prose, setAttribute, setText } from "../lib/dom.js";
import { age } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { Refresh, VisiblePolling } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { offerUndo } from "../link/undo.js";
import { kindOf } from "./kinds.js";

const POLL_MS = 1_000;

export class ApprovalCard {
  /**
   * @param {any} approval
   * @param {{store: import("../link/store.js").Store, channel: import("../link/channel.js").Channel,
   *   announce: (text: string) => void}} desk
   * @param {{select?: () => void, review?: (worktree: string) => void, settle?: (card: ApprovalCard) => void, dismiss: (card: ApprovalCard) => void}} on
   *   its checkbox was changed; it was decided; it is to be removed
   */
  constructor(approval, desk, on) {
    this.approval = approval;
    this.store = desk.store;
    this.on = on;
    this.kind = kindOf(approval);
    this.opensDetails = Boolean(this.kind.opensDetails?.(approval));
    /** "following": approved, and the work goes on. @type {"waiting"|"sending"|"following"|"settled"} */
    this.state = "waiting";
    /** @type {import("./kinds.js").Details|null} */
    this.details = null;
    const announce = (text) => desk.announce(`${this.name}: ${text}`);
    this.announce = announce;
    this.requests = new RequestRunner({ channel: desk.channel, announce });
    this.build();
    this.pollLive(desk.channel);
  }

  get name() {
    return this.kind.title(this.approval);
  }

  get tables() {
    return this.store.tables;
  }

  get detailsOpen() {
    return Boolean(this.details && !this.details.element.hidden);
  }

  /** Whether a person is in the middle of something here. */
  get inUse() {
    const isReading = this.detailsOpen && !this.opensDetails;
    const isTyping = this.element.contains(document.activeElement) && this.detailsOpen;
    return this.state === "sending" || !this.form.hidden || this.confirmBox.hasChildNodes() || isReading || isTyping;
  }

  build() {
    const titleId = freshId("title");
    const select = () => this.on.select?.();
    this.checkbox = checkbox(`Select ${this.name}`, select, false).box;
    this.checkbox.hidden = true;
    this.form = this.rejectForm();
    this.confirmBox = h("div", {});
    this.element = h(
      "li",
      { class: "wb-card wb-stack", "aria-labelledby": titleId, tabindex: -1 },
      h("div", { class: "wb-card-row" }, this.checkbox, icon(this.kind.icon), this.body(titleId), this.buttons()),
      this.form,
      this.confirmBox,
      this.requests.errorBox,
    );
    if (this.opensDetails) this.showDetails(true);
    this.draw();
  }

  body(titleId) {
    const { approval, kind } = this;
    const facts = kind.facts?.(approval);
    this.age = h("span", {});
    this.summary = h("div", { class: "wb-card-summary" }, ...kind.summary(approval, this.tables));
    this.lines = h("ul", { class: "wb-card-summary", "aria-label": "What decides it" });
    this.facts = h("div", { class: "wb-card-summary wb-cut", title: facts, hidden: !facts }, facts);
    this.live = kind.live?.();
    this.warnings = h("div", {});
    this.result = h("div", { class: "wb-message", tabindex: -1, hidden: true });
    const title = h("span", { class: "wb-strong wb-wrap", id: titleId, title: this.name }, this.name);
    const origin = h("span", { class: "wb-muted" }, `${kind.label} · ${kind.origin(approval)} · `, this.age);
    const head = h("div", { class: "wb-card-head" }, title, origin);
    const parts = [head, this.summary, this.lines, this.facts, this.warnings, this.result, this.live?.element];
    return h("div", { class: "wb-card-body" }, ...parts);
  }

  buttons() {
    const { kind } = this;
    this.approveButton = button("", "wb-button", () => this.approve());
    this.alsoButtons = (kind.also?.(this.approval) ?? []).map(({ label, choices }) =>
      button(
        label,
        "wb-button",
        ({ currentTarget }) => this.approveAlso(choices, currentTarget),
        `${label}: ${this.name}`,
      ),
    );
    const hasButton = kind.details && !this.opensDetails;
    this.detailsButton = hasButton ? button("Details…", "wb-button", () => this.toggleDetails()) : null;
    this.rejectButton = button(kind.reject ?? "Reject…", "wb-button", () => this.toggleReject(true));
    for (const opener of [this.detailsButton, this.rejectButton]) {
      opener?.setAttribute("aria-expanded", "false");
      opener?.setAttribute("aria-label", `${opener.textContent} ${this.name}`);
    }
    const review = () => this.on.review(kind.review(this.approval));
    const label = `Review the changes of ${this.name}`;
    this.reviewButton = this.on.review && kind.review ? button("Review…", "wb-button", review, label) : null;
    const all = [this.approveButton, ...this.alsoButtons, this.reviewButton, this.detailsButton, this.rejectButton];
    this.actions = h("div", { class: "wb-card-actions" }, ...all);
    return this.actions;
  }

  rejectForm() {
    this.reason = input("", {
      class: "wb-input wb-grow",
      maxlength: 1000,
      placeholder: "Reason (optional; sent to the requester)",
      "aria-label": `Reason for rejecting ${this.name}`,
    });
    this.confirmReject = h("button", { class: "wb-button wb-danger", type: "submit" }, this.kind.rejects ?? "Reject");
    const close = () => this.toggleReject(false);
    const on = { submit: () => this.reject(), escape: close };
    const { ban } = this.kind;
    this.ban = ban ? checkbox(ban.label, () => {}) : null;
    return form(
      { hidden: true },
      on,
      formButtons(this.confirmReject, close, this.reason, ...(ban ? [this.ban.element] : [])),
    );
  }

  /** Read the approval again and again while something is running that shows its progress without events. */
  pollLive(channel) {
    const { live } = this;
    if (!live) return;
    this.pollingEnd = new AbortController();
    const reading = new RequestRunner({ channel, announce: () => {} });
    const read = async () => {
      if (live.isRunning) live.refresh(await reading.send("get_approval", { approval_id: this.approval.id }));
    };
    new VisiblePolling(live.element, POLL_MS, read, () => {}, this.pollingEnd.signal);
  }

  /** Take a newer version of the approval. @param {any} approval */
  update(approval) {
    if (approval === this.approval || this.state === "settled" || this.state === "following") return;
    this.approval = approval;
    this.redraw();
  }

  draw() {
    const { approval, kind } = this;
    const label = kind.approve(approval, this.detailsOpen, this.details);
    if (this.state === "waiting") setText(this.approveButton, label);
    setAttribute(this.approveButton, "aria-label", `${label}: ${this.name}`);
    this.approveButton.classList.toggle("wb-primary", !kind.discouraged(approval, this.tables));
    this.drawLines(kind.lines?.(approval) ?? []);
    const warnings = kind.warnings?.(approval, this.tables, this.store.notebook) ?? [];
    const key = warnings.join("\n");
    const lines = () => warnings.map((text) => message("warning", ...prose(text)));
    if (key !== this.drawnWarnings) this.warnings.replaceChildren(...lines());
    this.drawnWarnings = key;
    this.live?.update(approval);
  }

  /** @param {string[]} lines */
  drawLines(lines) {
    const key = lines.join("\n");
    if (key !== this.drawnLines)
      this.lines.replaceChildren(...lines.map((line) => h("li", {}, h("span", {}, ...prose(line)))));
    this.lines.hidden = !lines.length;
    this.drawnLines = key;
  }

  /** Draw what the approval, or a decision made elsewhere, may have changed. */
  redraw() {
    this.draw();
    const summary = h("div", {}, ...this.kind.summary(this.approval, this.tables));
    if (summary.textContent !== this.summary.textContent) this.summary.replaceChildren(...summary.childNodes);
    this.details?.refresh?.(this.approval);
  }

  /** @param {boolean} enabled whether decisions can be sent */
  refresh(enabled) {
    this.enabled = enabled;
    if (this.state === "waiting") this.redraw();
    const disabled = String(!enabled || this.state === "sending");
    for (const element of [this.approveButton, ...this.alsoButtons, this.rejectButton, this.confirmReject]) {
      element.setAttribute("aria-disabled", disabled); // not `disabled`, which would take the focus away
    }
  }

  /** @param {number} now in ms */
  tick(now) {
    if (this.state === "following" || this.state === "settled") return;
    const waited = age(this.approval.created_at, now);
    setText(this.age, waited === "just now" ? waited : `waiting for ${waited}`);
  }

  toggleDetails(open = this.detailsButton.getAttribute("aria-expanded") !== "true") {
    this.showDetails(open);
    this.draw();
    if (open) this.details.first.focus();
    else this.detailsButton.focus();
  }

  showDetails(open) {
    if (open && !this.details) {
      const changed = () => this.state === "waiting" && this.draw();
      const desk = { channel: this.requests.desk.channel, announce: this.announce, changed };
      this.details = this.kind.details(this.approval, this.tables, desk);
      this.details.element.addEventListener("keydown", (event) => this.onDetailsKey(event));
      this.element.insertBefore(this.details.element, this.form);
    }
    if (this.details) this.details.element.hidden = !open;
    this.detailsButton?.setAttribute("aria-expanded", String(open));
  }

  onDetailsKey(event) {
    if (event.key === "Escape" && !this.opensDetails) this.toggleDetails(false);
    if (event.key === "Enter" && event.target.matches("input") && !this.kind.needsButton) this.approve();
  }

  toggleReject(open) {
    this.form.hidden = !open;
    this.rejectButton.setAttribute("aria-expanded", String(open));
    if (open) this.reason.focus();
    else this.rejectButton.focus();
  }

  approve() {
    const confirmation = this.kind.confirmation?.(this.approval);
    if (confirmation) return this.confirm(confirmation);
    const choices = this.detailsOpen ? this.details.choices() : (this.kind.choices?.(this.approval, this.tables) ?? {});
    if (!choices) return; // the details show what is wrong
    return this.decide("approve", { approval_id: this.approval.id, choices }, this.approveButton, this.kind.approving);
  }

  approveAlso(choices, pressed) {
    return this.decide("approve", { approval_id: this.approval.id, choices }, pressed, this.kind.approving);
  }

  confirm({ label, consequence, choices }) {
    const args = { approval_id: this.approval.id, choices };
    const onConfirm = (_, pressed) => this.decide("approve", args, pressed, this.kind.approving);
    askIn(this.confirmBox, this.approveButton, { label, consequence }, onConfirm);
  }

  reject() {
    const once = ["reject", { approval_id: this.approval.id, reason: this.reason.value.trim() }];
    const [op, args] = this.ban?.box.checked ? this.kind.ban.request(this.approval) : once;
    return this.decide(op, args, this.confirmReject, "Rejecting…");
  }

  async decide(op, args, pressed, label) {
    if (this.state !== "waiting") return;
    const before = pressed.textContent;
    pressed.textContent = label;
    this.begin();
    try {
      const { approval, outcome } = await this.requests.send(op, args);
      this.onDecided(op === "approve", outcome, approval);
    } catch (error) {
      this.onRefused(error, op);
    } finally {
      pressed.textContent = before;
      if (this.state === "waiting") this.draw();
    }
  }

  /** A decision is under way: no button works until `onDecided`, `onRefused` or `reset`. */
  begin() {
    this.state = "sending";
    this.requests.clearError();
    this.refresh(this.enabled);
  }

  /** It was not decided: it can be decided now. */
  reset() {
    this.state = "waiting";
    this.refresh(this.enabled);
  }

  /** @param {boolean} approved @param {any} outcome of the decision @param {any} [approval] as it is now */
  onDecided(approved, outcome, approval = this.approval) {
    if (!approved) this.onRejected();
    else if (this.kind.progress && !this.kind.progress({ ...approval, outcome }, this.tables).done) {
      this.follow({ ...approval, outcome });
    } else this.settle(this.kind.done(outcome, approval), true);
  }

  /** Who asked for a call or to be admitted was told at once; a merge can be asked again for some seconds. */
  onRejected() {
    const { id } = this.approval;
    const changes = [{ subject: `approval:${id}`, kind: "approval.rejected" }];
    this.settle(this.kind.rejected ?? "Rejected.", false);
    if (this.kind.undoable) offerUndo(this.element, { text: `${this.name} was rejected.`, changes });
  }

  /** The decision was refused: show why, and at which field. */
  onRefused(error, op) {
    if (error.code === "ALREADY_DECIDED") {
      this.settle("It was decided elsewhere; nothing was changed.", false);
      return;
    }
    this.reset();
    this.requests.showError(error);
    this.markField(error, op);
  }

  markField(error, op) {
    for (const field of this.element.querySelectorAll("[aria-invalid]")) {
      field.removeAttribute("aria-invalid");
      field.removeAttribute("aria-describedby");
    }
    const field = op === "approve" && this.detailsOpen ? this.details.fieldOf(error) : null;
    if (!field) return;
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", this.requests.errorBox.id);
    field.focus();
  }

  /** The approval has started work: show how far it is, until it has ended. @param {any} approval */
  follow(approval) {
    const focused = this.element.contains(document.activeElement);
    this.state = "following";
    this.hideQuestion();
    this.refreshing = new Refresh(
      () => this.readProgress(),
      (error) => this.requests.showError(error),
    );
    this.ending = new AbortController();
    const onChange = () => this.onProgress();
    this.store.subscribe(onChange, this.ending.signal);
    this.showProgress(approval);
    if (focused) this.result.focus();
  }

  /** Events about the approval or its subject: read it again. */
  onProgress() {
    const subjects = [`approval:${this.approval.id}`, ...(this.kind.subjects?.(this.approval) ?? [])];
    if (this.store.concerns(...subjects)) this.refreshing.now();
    this.showProgress(this.approval);
  }

  async readProgress() {
    const approval = await this.requests.send("get_approval", { approval_id: this.approval.id });
    if (this.state !== "following") return;
    this.requests.clearError();
    this.showProgress(approval);
  }

  showProgress(approval) {
    if (this.state !== "following") return;
    this.approval = approval;
    const { text, done, error } = this.kind.progress(approval, this.tables);
    if (!done) {
      this.showResult("in_progress", text);
      this.live?.update(approval);
    } else if (error) this.settleSentBack(error);
    else this.settle(text, true);
  }

  /** Its work has failed. The approval that asks again says why; as long as there is none, this card does. */
  settleSentBack(error) {
    const isAskedAgain = () => this.kind.successor?.(this.approval, this.tables);
    const settle = () => this.settle(`Sent back: ${error.message}`, false);
    if (isAskedAgain()) return settle();
    this.settleWithError(error);
    this.ending = new AbortController();
    this.store.subscribe(() => isAskedAgain() && settle(), this.ending.signal);
  }

  showResult(name, text) {
    const result = `${name} ${text}`;
    this.result.hidden = false;
    if (result === this.shownResult) return;
    this.shownResult = result;
    this.result.replaceChildren(icon(name), h("span", {}, text));
    this.announce(text);
  }

  /** It is decided: the buttons and everything that was open go. */
  hideQuestion() {
    this.form.hidden = true;
    this.confirmBox.replaceChildren();
    this.requests.clearError();
    if (this.details) this.details.element.hidden = true;
    this.actions.hidden = true;
    this.facts.hidden = true;
    this.lines.hidden = true;
    this.warnings.hidden = true;
    this.checkbox.checked = false;
    this.checkbox.hidden = true;
  }

  /** Show what came of it; nothing more is to be done here. */
  settle(text, good) {
    const focused = this.element.contains(document.activeElement);
    this.stop();
    this.state = "settled";
    this.hideQuestion();
    this.summary.hidden = true;
    if (this.live) this.live.element.hidden = true;
    this.element.classList.add("wb-settled");
    this.showResult(good ? "completed" : "cancelled", text);
    if (focused) this.result.focus();
    this.on.settle?.(this);
  }

  /** It is decided, but what went wrong must be read: the card stays until it is dismissed. @param {any} [error] */
  settleWithError(error = this.requests.error) {
    const focused = this.element.contains(document.activeElement);
    this.stop();
    this.state = "settled";
    this.hideQuestion();
    this.result.hidden = true;
    const dismiss = button("Dismiss", "wb-button", () => this.on.dismiss(this), `Dismiss: ${this.name}`);
    this.actions.replaceChildren(dismiss);
    this.actions.hidden = false;
    this.requests.showError(error);
    if (focused) this.element.focus();
  }

  /** Do not follow any work, nor what comes after it. */
  stop() {
    this.refreshing?.stop();
    this.ending?.abort();
    this.pollingEnd?.abort();
  }
}

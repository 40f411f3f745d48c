/** Approvals that were decided: read when the list is opened, and again after each decision. */

import { h, setText } from "../lib/dom.js";
import { dateTime } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { kindOf } from "./kinds.js";

const MOST = 50;
const ICONS = { approved: "completed", rejected: "cancelled", failed: "failed" };

export class Decided {
  /** @param {{store: import("../link/store.js").Store, channel: any, announce: (text: string) => void}} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.store = desk.store;
    this.requests = new RequestRunner(desk);
    this.refreshing = new Refresh(
      () => this.load(),
      (error) => this.requests.showError(error),
    );
    this.list = h("ul", { class: "wb-list" });
    this.note = h("p", { class: "wb-muted", hidden: true });
    const summary = h("summary", { class: "wb-muted", tabindex: 0 }, "Decided");
    const on = { toggle: () => this.element.open && this.refreshing.now() };
    this.element = h("details", { class: "wb-decided", on }, summary, this.requests.errorBox, this.note, this.list);
    signal.addEventListener("abort", () => this.refreshing.stop(), { once: true });
  }

  /** Read it again if it is open and an approval was decided. */
  update() {
    const waiting = [...this.store.tables.approvals.keys()].join();
    if (waiting === this.waiting) return;
    this.waiting = waiting;
    if (this.element.open) this.refreshing.now();
  }

  async load() {
    const { approvals } = await this.requests.send("list_approvals", { status: "decided", limit: MOST });
    this.requests.clearError();
    this.list.replaceChildren(...approvals.map(line));
    setText(this.note, approvals.length ? `The last ${MOST} decisions; the newest comes first.` : "Nothing yet.");
    this.note.hidden = approvals.length > 0 && approvals.length < MOST;
  }
}

function line(approval) {
  const { status, decided_by: by, decided_at: at, reason } = approval;
  const kind = kindOf(approval);
  const decision = `${status} by ${by} · ${dateTime(at)}${reason ? ` · ${reason}` : ""}`;
  return h(
    "li",
    {},
    icon(ICONS[status] ?? "question"),
    h("span", { class: "wb-strong" }, kind.title(approval)),
    h("span", { class: "wb-muted" }, `${kind.label} · ${kind.origin(approval)}`),
    h("span", { class: "wb-grow wb-cut", title: decision }, decision),
  );
}

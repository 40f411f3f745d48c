/** What was decided: by whom, when, after how long, with which note; searched, filtered, and read page by page. */

import { button, searchField, select } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { dateTime, duration } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { SavedViews } from "../saved_views/saved_views.js";
import { kindOf } from "./kinds.js";

const PAGE = 50;
const TYPING_MS = 200;
const EVERY = "";
const ICONS = { approved: "completed", rejected: "cancelled", failed: "failed" };
const DECISIONS = { approved: "Approved", rejected: "Rejected", failed: "No longer possible" };
const KINDS = {
  registration: "Registrations",
  integration: "Integrations",
  trust: "Trust",
  tool_call: "Tool calls",
  peer_call: "Calls of other nodes",
  question: "Questions of servers",
  agent_question: "Questions of agents",
  failure: "Repeated failures",
  budget: "Budgets",
  plan: "Plans",
};

export class Decided {
  /** @param {{store: import("../link/store.js").Store, channel: any, announce: (text: string) => void}} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.pages = 1;
    this.refreshing = new Refresh(
      () => this.load(),
      (error) => this.requests.showError(error),
    );
    const summary = h("summary", { class: "wb-muted", tabindex: 0 }, "Decided");
    const on = { toggle: () => this.element.open && this.refreshing.now() };
    this.list = h("ul", { class: "wb-list wb-decisions", "aria-label": "Decided" });
    this.note = h("p", { class: "wb-empty", hidden: true });
    this.more = button("Show earlier decisions", "wb-button", () => this.showEarlier());
    this.more.hidden = true;
    const content = [this.filterLine(), this.requests.errorBox, this.note, this.list, this.more];
    this.element = h("details", { class: "wb-decided", on }, summary, h("div", { class: "wb-stack" }, ...content));
    desk.store.subscribe(() => this.onChange(), signal);
    signal.addEventListener("abort", () => this.stop(), { once: true });
  }

  filterLine() {
    const choice = (every, labels, name) =>
      select([[EVERY, every], ...Object.entries(labels)], EVERY, {
        class: "wb-input wb-narrow",
        "aria-label": name,
        on: { change: () => this.restart() },
      });
    this.decision = choice("All decisions", DECISIONS, "Filter by decision");
    this.kind = choice("All kinds", KINDS, "Filter by kind");
    this.search = searchField("Search decisions", "Search decisions by name, person, requester or reason", {
      input: () => this.onType(),
    });
    this.views = new SavedViews(this.desk, "decided", {
      read: () => this.state(),
      apply: (state) => this.apply(state),
    });
    return h("div", { class: "wb-line" }, this.decision, this.kind, this.search, this.views.element);
  }

  /** Search and filters, to be saved. */
  state() {
    return { text: this.search.value.trim(), decision: this.decision.value, kind: this.kind.value };
  }

  apply({ text = "", decision = EVERY, kind = EVERY }) {
    this.search.value = text;
    this.decision.value = decision;
    this.kind.value = kind;
    this.restart();
  }

  onType() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.restart(), TYPING_MS);
  }

  restart() {
    clearTimeout(this.typing);
    this.pages = 1;
    this.refreshing.now();
    this.views.update();
  }

  showEarlier() {
    this.pages += 1;
    this.refreshing.now();
  }

  update() {
    if (this.element.open) this.views.update();
  }

  /** An approval may have been decided, or asked again. */
  onChange() {
    if (this.element.open && this.desk.store.concernsAny("approval")) this.refreshing.now();
  }

  /** Read all pages that are shown. */
  async load() {
    const { text, decision, kind } = this.state();
    const only = { search: text || null, decision: decision || null, kind: kind || null, limit: PAGE };
    const approvals = [];
    let cursor = null;
    for (let page = 0; page < this.pages; page += 1) {
      const read = await this.requests.send("list_decided_approvals", { ...only, cursor });
      approvals.push(...read.approvals);
      cursor = read.next_cursor;
      if (!cursor) break;
    }
    this.requests.clearError();
    this.list.replaceChildren(...approvals.map(line));
    this.more.hidden = !cursor;
    const filtered = text || decision || kind;
    setText(this.note, filtered ? "No decision matches." : "Nothing has been decided yet.");
    this.note.hidden = approvals.length > 0;
  }

  stop() {
    this.refreshing.stop();
    clearTimeout(this.typing);
  }
}

function line(approval) {
  const { status, person, decided_by: by, created_at: asked, decided_at: at, reason } = approval;
  const kind = kindOf(approval);
  const waited = duration(Date.parse(at) - Date.parse(asked));
  const who = person ?? by;
  const what = h("span", { class: "wb-strong wb-wrap" }, kind.title(approval));
  const origin = h("span", { class: "wb-muted" }, `${kind.label} · ${kind.origin(approval)}`);
  const decided = `${DECISIONS[status] ?? status} by ${who} · ${dateTime(at)} · after ${waited}`;
  const notes = [grantText(approval), reason].filter(Boolean);
  return h(
    "li",
    { class: "wb-decision" },
    icon(ICONS[status] ?? "question"),
    h("div", { class: "wb-decision-what" }, what, " ", origin),
    h("div", { class: "wb-decision-how" }, h("span", { class: "wb-muted" }, decided)),
    notes.length ? h("div", { class: "wb-decision-note wb-wrap" }, notes.join(" · ")) : null,
  );
}

/** What an admitted agent was granted: "as ada, worker, implementer, read and write". */
function grantText({ kind, status, outcome }) {
  if (kind !== "registration" || status !== "approved" || !outcome?.granted) return "";
  const { role, persona_id: persona, tool, session } = outcome.granted;
  const may = tool === "write" ? "read and write" : "read";
  return [`as ${outcome.agent_id}`, role, persona, may, session && `in ${session.name}`].filter(Boolean).join(", ");
}

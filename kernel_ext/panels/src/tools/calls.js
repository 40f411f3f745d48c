/** The calls of tools as they happen: the newest first, filtered, each to be opened. */

import { ActionButton } from "../components/action_form.js";
import { DataTable } from "../components/data_table.js";
import { Choice, TextFilter } from "../components/filters.js";
import { Embedded, Icon, html, render } from "../components/ui.js";
import { h } from "../lib/dom.js";
import { dateTime, duration, oneLine, timeOfDay } from "../lib/format.js";
import { agentOptions } from "../link/choices.js";
import { Refresh, VisiblePolling } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { SavedViews } from "../saved_views/saved_views.js";
import { CallDetails } from "./call_details.js";
import { CALL_STATES, Origin, callIcon, progressOf } from "./state.js";

const PAGE = 50;
/** The least time between two readings: calls may come a thousand a second. */
const PAUSE_MS = 200;
/** How often calls that run are read again: how far they are changes without an event. */
const PROGRESS_MS = 1_000;
const EVERY = "";
const SOURCES = [
  [EVERY, "All sources"],
  ["local", "Run here"],
  ["mcp", "MCP servers"],
];
const STATES = [[EVERY, "All states"], ["open", "Not ended"], ...Object.entries(CALL_STATES)];

const NONE = { name: EVERY, agent_id: EVERY, source: EVERY, state: EVERY };

export class Calls {
  /** @param {any} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.earlier = new RequestRunner(desk);
    this.list = new CallList();
    /** By the arguments of the operation. */
    this.filters = NONE;
    /** The calls that are being read, by id; they stay, whatever is filtered by. @type {Map<string, any>} */
    this.opened = new Map();
    this.isStale = true;
    const onError = (error) => this.requests.showError(error);
    this.reading = new Refresh(() => this.read(), onError);
    this.views = new SavedViews(desk, "tool_calls", {
      read: () => this.filters,
      apply: (state) => this.filter({ ...NONE, ...state }),
    });
    this.element = h("div", { class: "wb-stack" });
    desk.store.subscribe(() => this.onChange(), signal);
    this.polling = new VisiblePolling(this.element, PROGRESS_MS, () => this.readProgress(), onError, signal);
    signal.addEventListener("abort", () => this.reading.stop(), { once: true });
  }

  get isShown() {
    return this.element.checkVisibility();
  }

  /** Events may be about calls: read them again, while they are shown. */
  onChange() {
    if (this.desk.store.concernsAny("tool_call")) this.isStale = true;
    if (this.isStale && this.isShown) this.refresh();
  }

  refresh() {
    this.isStale = false;
    this.reading.now();
  }

  /** Begin anew with other filters. */
  filter(change) {
    this.filters = { ...this.filters, ...change };
    this.list = new CallList();
    this.draw();
    this.refresh();
  }

  async read() {
    const { list } = this;
    const page = await this.requests.send("list_tool_calls", this.filtered({}));
    if (list !== this.list) return;
    const isLate = list.openBesides(page.calls).length > 0;
    const { calls } = isLate ? await this.requests.send("list_tool_calls", this.filtered({ state: "open" })) : page;
    if (list !== this.list) return;
    list.takeNewest(page);
    if (isLate) await this.readEnded(list, calls);
    this.requests.clearError();
    this.isRead = true;
    this.draw();
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }

  /** How far the calls are that run. */
  async readProgress() {
    const { list } = this;
    if (![...list.calls.values()].some(({ state }) => state === "running")) return;
    const { calls } = await this.requests.send("list_tool_calls", this.filtered({ state: "running" }));
    this.requests.clearError();
    if (list !== this.list) return;
    list.refresh(calls);
    this.draw();
  }

  /** Earlier calls that had not ended, and are not among the open ones any more. */
  async readEnded(list, open) {
    list.refresh(open);
    const ended = list.openBesides(open);
    const read = ended.map(({ call_id: id }) => this.requests.send("get_tool_call", { call_id: id }));
    list.refresh(await Promise.all(read));
  }

  filtered(more) {
    const filters = Object.entries(this.filters).filter(([, value]) => value !== EVERY);
    return { limit: PAGE, ...Object.fromEntries(filters), ...more };
  }

  showEarlier() {
    return this.earlier.run("list_tool_calls", this.filtered({ cursor: this.list.cursor }));
  }

  takeEarlier(list, page) {
    if (list !== this.list) return;
    list.takeEarlier(page);
    this.draw();
  }

  /** @param {boolean} enabled whether requests can be sent @param {number} now in ms */
  update(enabled, now) {
    this.now = now;
    if (this.isStale) this.refresh();
    this.draw();
  }

  draw() {
    this.views.update();
    const { list } = this;
    for (const id of this.opened.keys()) if (list.calls.has(id)) this.opened.set(id, list.calls.get(id));
    const matching = [...list.calls].filter(([, call]) => this.matches(call));
    const visible = [...new Map([...matching, ...this.opened])].sort(([one], [other]) => (one < other ? 1 : -1));
    const isFiltered = Object.values(this.filters).some((value) => value !== EVERY);
    const none = "No calls yet. Tools that agents, models or you call appear here as they run.";
    const empty = isFiltered ? "No call matches the filters." : none;
    const more = {
      label: "Show earlier calls",
      working: "Working…",
      act: () => this.showEarlier(),
      onDone: (page) => this.takeEarlier(list, page),
    };
    const view = html`${this.filterLine()}
      <${Embedded} element=${this.requests.errorBox} />
      <${Embedded} element=${this.earlier.errorBox} />
      ${!matching.length && this.isRead && html`<p class="wb-empty">${empty}</p>`}
      ${visible.length > 0 && this.table(visible.map(([, call]) => call))}
      ${list.cursor !== null && html`<${ActionButton} ...${more} />`}`;
    render(view, this.element);
  }

  filterLine() {
    const about = (key, name) => {
      const onChoose = (value) => this.filter({ [key]: value });
      return { name: `Filter calls by ${name}`, value: this.filters[key], onChoose };
    };
    const agents = [[EVERY, "All agents"], ...agentOptions(this.desk.store.tables)];
    return html`<div class="wb-line">
      <${TextFilter} ...${about("name", "tool")} placeholder="All tools" />
      <${Choice} ...${about("agent_id", "agent")} options=${agents} />
      <${Choice} ...${about("source", "source")} options=${SOURCES} />
      <${Choice} ...${about("state", "state")} options=${STATES} />
      <span class="wb-grow" />
      <${Embedded} element=${this.views.element} />
    </div>`;
  }

  table(rows) {
    const { desk } = this;
    const opened = [...this.opened.keys()];
    const about = { class: "wb-calls wb-by-need", rows, columns: columnsOf(this.now), opener: "tool", opened };
    return html`<${DataTable}
      ...${about}
      id=${({ call_id: id }) => id}
      name=${({ tool_name: name }) => name}
      detail=${(call) => html`<${CallDetails} desk=${desk} call=${call} />`}
      onOpen=${(id) => this.toggle(id)}
    />`;
  }

  toggle(id) {
    if (!this.opened.delete(id)) this.opened.set(id, this.list.calls.get(id));
    this.draw();
  }

  /** Whether a call is still in the state that is filtered by. */
  matches({ state, ended_at: ended }) {
    const filter = this.filters.state;
    return filter === EVERY || state === filter || (filter === "open" && !ended);
  }
}

/** @param {number} now in ms @returns {import("../components/data_table.js").Column[]} */
function columnsOf(now) {
  const took = ({ duration_ms: ms, state, started_at: began }) =>
    ms ?? (state === "running" ? Math.max(0, now - Date.parse(began)) : null);
  return [
    {
      key: "time",
      label: "Time",
      cell: ({ requested_at: at }) => timeOfDay(at),
      title: ({ requested_at: at }) => dateTime(at),
    },
    { key: "tool", label: "Tool", cell: nameAndProgress },
    { key: "origin", label: "Source", cell: (call) => html`<${Origin} of=${call} />` },
    { key: "caller", label: "Called by", cell: ({ agent_id: agent, caller }) => agent ?? caller },
    { key: "state", label: "State", cell: stateMark },
    { key: "about", label: "Arguments or error", wide: true, cell: aboutText, title: aboutText },
    { key: "took", label: "Took", cell: (call) => (took(call) === null ? "" : duration(took(call))) },
  ];
}

/** Why a call failed, or what the tool was called with. */
function aboutText({ error_code: code, tool_input: given, tool_result: result }) {
  if (!code) return given === "{}" ? "" : oneLine(given);
  const text = errorText(result);
  return oneLine(text.includes(code) ? text : `${code}: ${text}`);
}

/** A text is JSON, unless only its beginning is kept. */
function errorText(result) {
  try {
    const value = JSON.parse(result ?? "");
    return typeof value === "string" ? value : result;
  } catch {
    return (result ?? "").replace(/^"/, "");
  }
}

function nameAndProgress(call, opener) {
  const progress = call.state === "running" ? progressOf(call) : null;
  return html`<div class="wb-line">${opener}<span class="wb-muted wb-cut">${progress}</span></div>`;
}

function stateMark({ state }) {
  return html`<span class="wb-state"
    ><${Icon} name=${callIcon(state)} /><span>${CALL_STATES[state] ?? state}</span></span
  >`;
}

/** @typedef {{call_id: string, state: string, ended_at: string|null, [more: string]: any}} Call ids sort by time */

/** The calls of tools that are known, the newest first: a page of them, which newer ones join. Pure. */
class CallList {
  constructor() {
    /** @type {Map<string, Call>} by id */
    this.calls = new Map();
    /** The cursor of the calls before them; null: there are none. @type {string|null} */
    this.cursor = null;
  }

  /** Take the newest page. If calls are missing between it and those that are known, these are forgotten. @param {{calls: Call[], next_cursor: string|null}} page */
  takeNewest({ calls, next_cursor: cursor }) {
    const isJoined = calls.some(({ call_id: id }) => this.calls.has(id));
    if (!isJoined || !this.calls.size) {
      this.calls = new Map();
      this.cursor = cursor;
    }
    this.put(calls);
  }

  /** Take the page after the cursor. */
  takeEarlier({ calls, next_cursor: cursor }) {
    this.put(calls);
    this.cursor = cursor;
  }

  /** Take newer versions of calls that are known. @param {Call[]} calls */
  refresh(calls) {
    this.put(calls.filter(({ call_id: id }) => this.calls.has(id)));
  }

  /** Calls that are not in these, and had not ended when they were read. @param {Call[]} calls */
  openBesides(calls) {
    const read = new Set(calls.map(({ call_id: id }) => id));
    return [...this.calls.values()].filter((call) => !call.ended_at && !read.has(call.call_id));
  }

  put(calls) {
    for (const call of calls) this.calls.set(call.call_id, call);
  }
}

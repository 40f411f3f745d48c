/** The calls of tools as they happen: the newest first, filtered, each to be opened. */

import { button, input, moveBetweenRows, select, setOptions } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { KeyedList } from "../lib/keyed_list.js";
import { agentOptions } from "../link/choices.js";
import { Refresh, VisiblePolling } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { SavedViews } from "../saved_views/saved_views.js";
import { CallList } from "./call_list.js";
import { CallRow, COLUMNS } from "./call_row.js";
import { CALL_STATES } from "./state.js";

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

export class Calls {
  /** @param {any} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.earlier = new RequestRunner(desk);
    this.list = new CallList();
    this.isStale = true;
    const onError = (error) => this.requests.showError(error);
    this.reading = new Refresh(() => this.read(), onError);
    const attributes = (name) => ({
      class: "wb-input wb-narrow",
      "aria-label": `Filter calls by ${name}`,
      on: { change: () => this.restart() },
    });
    /** By the arguments of the operation. */
    this.filters = {
      name: input("", { ...attributes("tool"), placeholder: "All tools", maxlength: 200 }),
      agent_id: select(this.agents(), EVERY, attributes("agent")),
      source: select(SOURCES, EVERY, attributes("source")),
      state: select(STATES, EVERY, attributes("state")),
    };
    this.empty = h("p", { class: "wb-empty", hidden: true });
    this.more = button("Show earlier calls", "wb-button", () => this.showEarlier());
    this.more.hidden = true;
    this.views = new SavedViews(desk, "tool_calls", {
      read: () => this.chosen(),
      apply: (state) => this.apply(state),
    });
    const filters = h("div", { class: "wb-line" }, ...Object.values(this.filters));
    filters.append(h("span", { class: "wb-grow" }), this.views.element);
    const errors = [this.requests.errorBox, this.earlier.errorBox];
    this.element = h("div", { class: "wb-stack" }, filters, ...errors, this.empty, this.table(), this.more);
    desk.store.subscribe(() => this.onChange(), signal);
    this.polling = new VisiblePolling(this.element, PROGRESS_MS, () => this.readProgress(), onError, signal);
    signal.addEventListener("abort", () => this.reading.stop(), { once: true });
  }

  table() {
    const heads = Object.entries(COLUMNS).map(([key, label]) =>
      h("th", { scope: "col", class: `wb-col-${key}` }, label),
    );
    this.body = h("tbody", {});
    const on = { keydown: (event) => moveBetweenRows(event, this.body) };
    this.grid = h("table", { class: "wb-table wb-calls", on }, h("thead", {}, h("tr", {}, ...heads)), this.body);
    this.rows = new KeyedList(this.body, () => new CallRow(this.desk), {
      keep: (_, row) => row.isOpen, // it no longer matches the filter, but it is being read
    });
    return this.grid;
  }

  get isShown() {
    return this.element.checkVisibility();
  }

  /** What is chosen in each filter. */
  chosen() {
    return Object.fromEntries(Object.entries(this.filters).map(([name, { value }]) => [name, value.trim()]));
  }

  agents() {
    return [[EVERY, "All agents"], ...agentOptions(this.desk.store.tables)];
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

  /** Show what was saved. @param {any} state */
  apply(state) {
    for (const [name, control] of Object.entries(this.filters)) {
      control.value = state[name] ?? EVERY;
      if (control.selectedIndex < 0) control.value = EVERY;
    }
    this.restart();
  }

  /** Begin anew with other filters. */
  restart() {
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
    const wanted = Object.entries(this.chosen()).filter(([, value]) => value !== EVERY);
    return { limit: PAGE, ...Object.fromEntries(wanted), ...more };
  }

  async showEarlier() {
    const { list } = this;
    const page = await this.earlier.run("list_tool_calls", this.filtered({ cursor: list.cursor }), this.more);
    if (!page || list !== this.list) return;
    list.takeEarlier(page);
    this.draw();
  }

  /** @param {boolean} enabled whether requests can be sent @param {number} now in ms */
  update(enabled, now) {
    this.enabled = enabled;
    this.now = now;
    if (this.isStale) this.refresh();
    this.draw();
  }

  draw() {
    this.views.update();
    const { calls } = this.list;
    const ids = this.list.ids.filter((id) => this.matches(calls.get(id)));
    this.rows.show(ids, (row, id) => row.show(calls.get(id), this.enabled, this.now));
    this.grid.hidden = this.rows.items.size === 0;
    this.more.hidden = this.list.cursor === null;
    this.empty.hidden = ids.length > 0 || !this.isRead;
    setOptions(this.filters.agent_id, [["", this.agents()]]);
    const isFiltered = Object.values(this.chosen()).some((value) => value !== EVERY);
    const none = "No calls yet. Tools that agents, models or you call appear here as they run.";
    this.empty.textContent = isFiltered ? "No call matches the filters." : none;
  }

  /** Whether a call is still in the state that is filtered by. */
  matches({ state, ended_at: ended }) {
    const wanted = this.filters.state.value;
    return wanted === EVERY || state === wanted || (wanted === "open" && !ended);
  }
}

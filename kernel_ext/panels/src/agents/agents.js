/** The agents: a table to filter, with details to open and many to assign at once; and their processes. */

import { Chips } from "../lib/chips.js";
import { button, checkbox, moveBetweenRows, searchField, select, setOptions } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { KeyedList } from "../lib/keyed_list.js";
import { Sorting } from "../lib/sorting.js";
import { Segments } from "../lib/segments.js";
import { Processes } from "../processes/processes.js";
import { sessionOptions } from "../projects/lookup.js";
import { SavedViews } from "../saved_views/saved_views.js";
import { AssignForm } from "./assign_form.js";
import { AgentRow, COLUMNS, sortValue, stateDot } from "./row.js";
import { AGENT_STATES, agentState, isAdmitted } from "./state.js";

const STEP = 100;
const EVERY = "=";
const NONE = "";
const MODES = { agents: "Agents", processes: "Processes" };
const SESSION_FILTERS = [
  [EVERY, "All sessions"],
  [NONE, "In no session"],
];

export class Agents {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   * @param {() => void} connect shows how to connect an agent
   */
  constructor(store, channel, announce, signal, connect) {
    this.desk = { store, channel, announce };
    this.store = store;
    this.connect = connect;
    this.filters = { state: null, text: "", session: EVERY };
    this.limit = STEP;
    this.mode = "agents";
    this.processes = new Processes(this.desk, signal);
    this.list = this.table();
    const id = freshId("agents");
    this.element = h(
      "section",
      { class: "wb-section wb-stack", "aria-labelledby": id },
      this.toolbar(id),
      this.list,
      this.processes.element,
    );
  }

  toolbar(id) {
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.modes = new Segments(MODES, "Show", (mode) => this.setMode(mode));
    this.session = select([], EVERY, {
      class: "wb-input wb-narrow",
      "aria-label": "Filter agents by session",
      on: { change: () => this.filter({ session: this.session.value }) },
    });
    this.search = searchField("Filter agents", "Filter agents by id, name, persona, tool or client", {
      input: () => this.filter({ text: this.search.value.trim().toLowerCase() }),
      keydown: (event) => this.onSearchKey(event),
    });
    this.views = new SavedViews(this.desk, "agents", {
      read: () => ({ ...this.filters, sort: this.sorting.state() }),
      apply: (state) => this.apply(state),
    });
    const heading = h("h3", { class: "wb-heading", id }, "Agents");
    const tools = [this.modes.element, this.session, this.search, this.views.element];
    return h("div", { class: "wb-toolbar wb-toolbar-full" }, heading, this.summary, ...tools);
  }

  table() {
    this.chips = new Chips("Filter agents by state", (state) => this.filter({ state }));
    this.assignForm = new AssignForm(this.desk, () => this.selected());
    this.selectAll = checkbox("Select all agents in the table", (on) => this.onSelectAll(on), false).box;
    this.sorting = new Sorting(COLUMNS, () => this.update(Date.now()));
    const heads = Object.keys(COLUMNS).map((key) =>
      this.sorting.heading(key, "th", { scope: "col", class: `wb-col-${key}` }),
    );
    const head = h("tr", {}, h("th", { class: "wb-col-pick" }, this.selectAll), ...heads);
    this.body = h("tbody", {});
    this.rows = new KeyedList(this.body, (id) => this.row(id), {
      // It no longer matches the filter, but its details are being read; or its id is changed by a request under way.
      keep: (id, row) => row.isOpen && (this.store.tables.agents.has(id) || row.details.requests.busy),
      onRemove: (_, hadFocus) => hadFocus && this.search.focus(),
    });
    const on = { keydown: (event) => moveBetweenRows(event, this.body) };
    this.grid = h("table", { class: "wb-table wb-agents", on }, h("thead", {}, head), this.body);
    this.more = button("Show more", "wb-button", () => this.showMore());
    this.empty = h("p", { class: "wb-empty" });
    const parts = [this.chips.element, this.assignForm.element, this.empty, this.grid, this.more];
    return h("div", { class: "wb-stack" }, ...parts);
  }

  row(id) {
    return new AgentRow(this.store.tables.agents.get(id), this.desk, {
      onSelect: () => this.drawSelected(),
      onRename: (from, to) => this.rename(from, to),
    });
  }

  /** The number of admitted agents. @param {number} now in ms */
  count(now) {
    return [...this.store.tables.agents.values()].filter((agent) => isAdmitted(agentState(agent, now))).length;
  }

  /** Bring everything up to date. @param {number} now in ms */
  update(now) {
    this.drawMode();
    if (this.mode === "agents") this.updateAgents(now);
    else {
      this.processes.update(now);
      setText(this.summary, this.processes.summary());
    }
  }

  setMode(mode) {
    this.mode = mode;
    this.update(Date.now());
  }

  drawMode() {
    const running = this.processes.count();
    const agents = this.mode === "agents";
    this.modes.setLabel("processes", running ? `Processes ${running.toLocaleString("en")}` : "Processes");
    this.modes.show(this.mode);
    this.list.hidden = !agents;
    this.processes.element.hidden = agents;
    this.search.hidden = this.session.hidden = this.views.element.hidden = !agents;
  }

  updateAgents(now) {
    const { tables } = this.store;
    const agents = [...tables.agents.values()].sort(oldestFirst);
    const states = new Map(agents.map((agent) => [agent.id, agentState(agent, now)]));
    this.drawCounts(agents, states);
    setOptions(this.session, [["", SESSION_FILTERS], ...sessionOptions(tables)], this.filters.session);
    const found = agents.filter((agent) => this.matches(agent, states.get(agent.id)));
    const matching = this.sorting.sorted(found, (agent, key) => sortValue(key, agent, states.get(agent.id), tables));
    const shown = matching.slice(0, this.limit).map(({ id }) => id);
    this.rows.show(shown, (row, id) => row.show(tables.agents.get(id), states.get(id), tables, now));
    this.more.hidden = matching.length <= this.limit;
    this.grid.hidden = matching.length === 0;
    this.drawEmpty(agents.length, matching.length);
    this.drawSelected();
  }

  drawCounts(agents, states) {
    const counts = {};
    for (const state of states.values()) counts[state] = (counts[state] ?? 0) + 1;
    const admitted = agents.filter(({ id }) => isAdmitted(states.get(id)));
    const online = ((counts.active ?? 0) + (counts.idle ?? 0)).toLocaleString("en");
    setText(this.summary, admitted.length ? `${plural(admitted.length, "agent")} · ${online} online` : "");
    const chips = Object.entries(AGENT_STATES)
      .filter(([state]) => state !== "pending")
      .map(([key, label]) => ({ key, label, count: counts[key] ?? 0, mark: () => stateDot(key) }));
    this.chips.update([{ key: null, label: "Admitted", count: admitted.length }, ...chips], this.filters.state);
    const none = agents.length === 0;
    this.chips.element.hidden = this.search.hidden = this.session.hidden = this.views.element.hidden = none;
    this.views.update();
  }

  /** Find an agent and open its details. @param {string} id */
  reveal(id) {
    this.mode = "agents";
    this.search.value = id;
    this.filter({ state: null, text: id.toLowerCase(), session: EVERY });
    this.drawMode();
    const row = this.rows.items.get(id);
    if (row && !row.isOpen) row.toggle();
    row?.opener.focus();
  }

  /** An agent that was renamed keeps its row, and what is open in it. */
  rename(from, to) {
    const { agents } = this.store.tables;
    this.rows.rename(from, to);
    if (!agents.has(from)) return; // the rows with its new id came before the answer
    agents.set(to, { ...agents.get(from), id: to, agent_id: to });
    agents.delete(from);
  }

  drawEmpty(total, matching) {
    this.empty.hidden = matching > 0 || this.store.version === null;
    const reason = total ? "No agent matches the filters. " : "No agents yet. Agents that register wait in the inbox. ";
    if (this.empty.hidden || this.empty.firstChild?.data === reason) return; // its button may have the focus
    const next = total
      ? button("Show all", "wb-link", () => this.clear())
      : button("Connect an agent", "wb-link", this.connect);
    this.empty.replaceChildren(reason, next, ".");
  }

  drawSelected() {
    const total = this.rows.items.size;
    const count = this.selected().length;
    this.selectAll.checked = total > 0 && count === total;
    this.selectAll.indeterminate = count > 0 && count < total;
    this.assignForm.update(count);
  }

  matches(agent, state) {
    const { state: wanted, session, text } = this.filters;
    if (wanted ? state !== wanted : !isAdmitted(state)) return false;
    if (session !== EVERY && (agent.session_id ?? NONE) !== session) return false;
    return text.split(/\s+/).every((word) => searchText(agent).includes(word));
  }

  filter(change) {
    Object.assign(this.filters, change);
    this.limit = STEP;
    this.update(Date.now());
    this.desk.announce(`${plural(this.rows.items.size, "agent")} shown.`);
  }

  /** Show what was saved. @param {any} state */
  apply({ state = null, text = "", session = EVERY, sort }) {
    this.sorting.set(sort);
    this.search.value = text;
    this.filter({ state, text, session });
  }

  clear() {
    this.search.value = "";
    this.filter({ state: null, text: "", session: EVERY });
    this.search.focus();
  }

  showMore() {
    this.limit += STEP;
    this.update(Date.now());
  }

  /** The ids of the selected agents. */
  selected() {
    return [...this.rows.items.values()].filter((row) => row.checkbox.checked).map((row) => row.agent.id);
  }

  onSelectAll(on) {
    for (const row of this.rows.items.values()) row.checkbox.checked = on;
    this.drawSelected();
  }

  onSearchKey(event) {
    if (event.key === "Escape" && this.search.value) {
      event.preventDefault();
      this.search.value = "";
      this.filter({ text: "" });
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      this.body.querySelector(".wb-opener")?.focus();
    }
  }
}

function oldestFirst(a, b) {
  return a.registered_at < b.registered_at ? -1 : Number(a.registered_at > b.registered_at);
}

function searchText({ agent_id, name, persona_id, role, tool, client, address }) {
  return [agent_id, name, persona_id, role, tool, client, address].join("\n").toLowerCase();
}

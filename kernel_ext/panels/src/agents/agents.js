/** The agents: a table to filter, with details to open and many to assign at once; and their processes. */

import { DataTable, sortedRows } from "../components/data_table.js";
import { Chips } from "../components/filters.js";
import { Button, Checkbox, Embedded, drawnIn, html } from "../components/ui.js";
import { Segments, searchField, select, setOptions } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { Processes } from "../processes/processes.js";
import { sessionOptions } from "../projects/lookup.js";
import { SavedViews } from "../saved_views/saved_views.js";
import { AssignForm } from "./assign_form.js";
import { columnsOf } from "./columns.js";
import { AgentDetails } from "./details.js";
import { Leases } from "./leases.js";
import { AGENT_STATES, agentState, isAdmitted } from "./state.js";

const STEP = 100;
const EVERY = "=";
const NONE = "";
const ALL = { state: null, text: "", session: EVERY };
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
    this.filters = ALL;
    /** @type {import("../components/data_table.js").Sort} */
    this.sort = null;
    this.limit = STEP;
    this.mode = "agents";
    /** The details that are open, by the ids of their agents. @type {Map<string, AgentDetails>} */
    this.opened = new Map();
    /** The ids of the agents that are selected; all of them are shown. @type {Set<string>} */
    this.selected = new Set();
    this.shown = [];
    this.assignForm = new AssignForm(this.desk, () => [...this.selected]);
    this.processes = new Processes(this.desk, signal);
    this.list = h("div", { class: "wb-stack" });
    this.draw = drawnIn(this.list, signal);
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
    this.modes = new Segments(MODES, "Show", (mode) => this.change({ mode }));
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
      read: () => ({ ...this.filters, sort: this.sort }),
      apply: (state) => this.apply(state),
    });
    const heading = h("h3", { class: "wb-heading", id }, "Agents");
    const tools = [this.modes.element, this.session, this.search, this.views.element];
    return h("div", { class: "wb-toolbar wb-toolbar-full" }, heading, this.summary, ...tools);
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
    const { tables, version } = this.store;
    this.updateDetails(now);
    const agents = [...tables.agents.values()];
    const counts = {};
    for (const agent of agents) counts[agentState(agent, now)] = (counts[agentState(agent, now)] ?? 0) + 1;
    const admitted = this.count(now);
    this.drawToolbar(counts, admitted, !agents.length);
    const columns = columnsOf(tables, now);
    const matching = agents.filter((agent) => this.matches(agent, agentState(agent, now)));
    const opened = [...this.opened.values()].map(({ agent }) => agent);
    const visible = [...new Set([...matching, ...opened])].sort(oldestFirst);
    const sorted = sortedRows(visible, columns, this.sort);
    this.shown = sorted.filter((agent, at) => at < this.limit || opened.includes(agent));
    this.selected = new Set(this.shown.map(({ id }) => id).filter((id) => this.selected.has(id)));
    this.assignForm.update(this.selected.size);
    this.draw(
      html`${agents.length > 0 && this.chips(counts, admitted)}
        <${Embedded} element=${this.assignForm.element} />
        ${!matching.length && version !== null && this.empty(agents.length)} ${this.table(columns)}
        ${sorted.length > this.limit && html`<${Button} label="Show more" onClick=${() => this.change({ limit: this.limit + STEP })} />`}
        <${Leases} desk=${this.desk} />`,
    );
  }

  /** Details stay open while their agent is there, or its id is changed by a request under way. */
  updateDetails(now) {
    const { agents } = this.store.tables;
    for (const [id, details] of this.opened) {
      if (agents.has(id)) details.update(agents.get(id), now);
      else if (!details.requests.busy) this.opened.delete(id);
    }
  }

  table(columns) {
    const detail = ({ id }) => {
      const onKeyDown = (event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        this.toggle(id);
      };
      return html`<div onKeyDown=${onKeyDown}><${Embedded} element=${this.opened.get(id).element} /></div>`;
    };
    return html`<${DataTable}
      class="wb-agents wb-by-need"
      hidden=${!this.shown.length}
      rows=${this.shown}
      columns=${[this.pickColumn(), ...columns]}
      opener="agent"
      opened=${[...this.opened.keys()]}
      detail=${detail}
      sort=${this.sort}
      onSort=${(sort) => this.change({ sort })}
      onOpen=${(id) => this.toggle(id)}
      onGone=${() => this.search.focus()}
    />`;
  }

  pickColumn() {
    const [total, count] = [this.shown.length, this.selected.size];
    const state = { checked: total > 0 && count === total, indeterminate: count > 0 && count < total };
    const every = (on) => this.change({ selected: new Set(on ? this.shown.map(({ id }) => id) : []) });
    const toggle = (id) => (on) => {
      this.selected[on ? "add" : "delete"](id);
      this.change({});
    };
    return {
      key: "pick",
      label: html`<${Checkbox} name="Select all agents in the table" ...${state} onChange=${every} />`,
      cell: ({ id }) =>
        html`<${Checkbox} name="Select ${id}" checked=${this.selected.has(id)} onChange=${toggle(id)} />`,
    };
  }

  drawToolbar({ active = 0, idle = 0 }, admitted, isEmpty) {
    const online = (active + idle).toLocaleString("en");
    setText(this.summary, admitted ? `${plural(admitted, "agent")} · ${online} online` : "");
    setOptions(this.session, [["", SESSION_FILTERS], ...sessionOptions(this.store.tables)], this.filters.session);
    this.search.hidden = this.session.hidden = this.views.element.hidden = isEmpty;
    this.views.update();
  }

  chips(counts, admitted) {
    const states = Object.entries(AGENT_STATES)
      .filter(([state]) => state !== "pending")
      .map(([key, label]) => ({ key, label, count: counts[key] ?? 0, mark: () => stateDot(key) }));
    const chips = [{ key: null, label: "Admitted", count: admitted }, ...states];
    const about = { name: "Filter agents by state", chips, chosen: this.filters.state };
    return html`<${Chips} ...${about} onChoose=${(state) => this.filter({ state })} />`;
  }

  empty(total) {
    const link = (label, onClick) => html`<${Button} class="wb-link" label=${label} onClick=${onClick} />`;
    const words = total
      ? ["No agent matches the filters. ", link("Show all", () => this.clear())]
      : ["No agents yet. Agents that register wait in the inbox. ", link("Connect an agent", this.connect)];
    return html`<p class="wb-empty">${words}.</p>`;
  }

  toggle(id) {
    if (!this.opened.delete(id)) {
      const onRename = (from, to) => this.rename(from, to);
      const details = new AgentDetails(this.store.tables.agents.get(id), this.desk, onRename);
      this.opened.set(id, details);
      details.load();
    }
    this.update(Date.now());
  }

  /** Find an agent and open its details. @param {string} id */
  reveal(id) {
    this.mode = "agents";
    this.search.value = id;
    this.filter({ ...ALL, text: id.toLowerCase() });
    if (this.store.tables.agents.has(id) && !this.opened.has(id)) this.toggle(id);
    this.list.querySelector(`[data-row="${CSS.escape(id)}"]`)?.focus();
  }

  /** An agent that was renamed stays open and selected. */
  rename(from, to) {
    const { agents } = this.store.tables;
    this.opened = new Map([...this.opened].map(([id, details]) => [id === from ? to : id, details]));
    if (this.selected.delete(from)) this.selected.add(to);
    if (agents.has(from)) {
      agents.set(to, { ...agents.get(from), id: to, agent_id: to });
      agents.delete(from);
    } // else the rows with its new id came before the answer
    this.update(Date.now());
  }

  matches(agent, state) {
    const { state: chosen, session, text } = this.filters;
    if (chosen ? state !== chosen : !isAdmitted(state)) return false;
    if (session !== EVERY && (agent.session_id ?? NONE) !== session) return false;
    return text.split(/\s+/).every((word) => searchText(agent).includes(word));
  }

  filter(change) {
    this.change({ filters: { ...this.filters, ...change }, limit: STEP });
    this.desk.announce(`${plural(this.shown.length, "agent")} shown.`);
  }

  change(what) {
    Object.assign(this, what);
    this.update(Date.now());
  }

  /** Show what was saved. @param {any} state */
  apply({ state = null, text = "", session = EVERY, sort = null }) {
    this.sort = sort;
    this.search.value = text;
    this.filter({ state, text, session });
  }

  clear() {
    this.search.value = "";
    this.filter(ALL);
    this.search.focus();
  }

  onSearchKey(event) {
    if (event.key === "Escape" && this.search.value) {
      event.preventDefault();
      this.search.value = "";
      this.filter({ text: "" });
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      this.list.querySelector(".wb-opener")?.focus();
    }
  }
}

function stateDot(state) {
  return h("span", { class: "wb-dot", "data-state": state, "aria-hidden": "true" });
}

function oldestFirst(a, b) {
  return a.registered_at < b.registered_at ? -1 : Number(a.registered_at > b.registered_at);
}

function searchText({ agent_id, name, persona_id, role, tool, client, address }) {
  return [agent_id, name, persona_id, role, tool, client, address].join("\n").toLowerCase();
}

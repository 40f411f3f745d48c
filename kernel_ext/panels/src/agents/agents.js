/** Who is admitted: a table to search, to open one by one, and to move many at once. */

import { AgentDetails } from "./agent.js";
import { Chips } from "../lib/chips.js";
import { Segments } from "../lib/segments.js";
import { Asker } from "../link/asker.js";
import { button, checkbox, enable, select, setOptions, walkRows } from "../lib/controls.js";
import { freshId, h, setAttribute, setText } from "../lib/dom.js";
import { age, counted } from "../lib/format.js";
import { ACCESS } from "./grant.js";
import { sessionGroups, sessionName, teamsOf } from "../projects/places.js";
import { Processes } from "../processes/processes.js";
import { isCurrent, standing, STANDINGS } from "./standing.js";

const STEP = 100;
const EVERY = "=";
const NONE = "";
const SHAPES = { agents: "Agents", processes: "Processes" };
const COLUMNS = ["Agent", "State", "Persona", "Permission", "Session", "Connections", "Last active"];

export class Agents {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   */
  constructor(store, channel, announce, signal) {
    this.desk = { store, channel, announce };
    this.store = store;
    this.view = { state: null, text: "", session: EVERY };
    this.shown = STEP;
    this.shape = "agents";
    this.processes = new Processes(this.desk, signal);
    this.shapes = new Segments(SHAPES, "Show", (shape) => this.turn(shape));
    /** @type {Map<string, AgentRow>} */
    this.rows = new Map();
    const id = freshId("agents");
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.search = h("input", {
      class: "wb-input wb-search",
      type: "search",
      placeholder: "Filter agents",
      "aria-label": "Filter agents by id, name, persona, tool or client",
      on: {
        input: () => this.filter({ text: this.search.value.trim().toLowerCase() }),
        keydown: (event) => this.onSearchKey(event),
      },
    });
    this.session = select([], EVERY, {
      class: "wb-input wb-narrow",
      "aria-label": "Show agents of a session",
      on: { change: () => this.filter({ session: this.session.value }) },
    });
    this.chips = new Chips("Show agents by state", (state) => this.filter({ state }));
    this.bulk = new Placing(this.desk, () => this.picked());
    this.all = checkbox("Select all agents shown", (on) => this.pickAll(on), false).box;
    this.body = h("tbody", {});
    this.table = h(
      "table",
      { class: "wb-table wb-agents", on: { keydown: (event) => walkRows(event, this.body) } },
      this.head(),
      this.body,
    );
    this.more = button("Show more", "wb-button", () => this.showMore());
    this.nothing = h("p", { class: "wb-empty" });
    this.known = h(
      "div",
      { class: "wb-stack" },
      this.chips.element,
      this.bulk.element,
      this.nothing,
      this.table,
      this.more,
    );
    this.element = h(
      "section",
      { class: "wb-section wb-stack", "aria-labelledby": id },
      h(
        "div",
        { class: "wb-toolbar" },
        h("h3", { class: "wb-heading", id }, "Agents"),
        this.summary,
        this.shapes.element,
        this.session,
        this.search,
      ),
      this.known,
      this.processes.element,
    );
  }

  head() {
    const heads = COLUMNS.map((name) =>
      h("th", { scope: "col", class: `wb-col-${name.toLowerCase().replace(" ", "-")}` }, name),
    );
    return h("thead", {}, h("tr", {}, h("th", { class: "wb-col-pick" }, this.all), ...heads));
  }

  /** How many agents there are, without those that wait or were turned away. */
  count(now) {
    return [...this.store.tables.agents.values()].filter((agent) => isCurrent(standing(agent, now))).length;
  }

  /** Bring everything up to date. @param {number} now in ms */
  update(now) {
    this.drawShape();
    if (this.shape === "processes") {
      this.processes.update(now);
      setText(this.summary, this.processes.summary());
    } else this.updateAgents(now);
  }

  turn(shape) {
    this.shape = shape;
    this.update(Date.now());
  }

  drawShape() {
    const running = this.processes.count();
    const agents = this.shape === "agents";
    this.shapes.setLabel("processes", running ? `Processes ${running.toLocaleString("en")}` : "Processes");
    this.shapes.show(this.shape);
    this.known.hidden = !agents;
    this.processes.element.hidden = agents;
    this.search.hidden = this.session.hidden = !agents;
  }

  updateAgents(now) {
    const { tables } = this.store;
    this.now = now;
    const agents = [...tables.agents.values()].sort(oldestFirst);
    const states = new Map(agents.map((agent) => [agent.id, standing(agent, now)]));
    this.drawCounts(agents, states);
    setOptions(
      this.session,
      [
        [
          "",
          [
            [EVERY, "All sessions"],
            [NONE, "In no session"],
          ],
        ],
        ...sessionGroups(tables),
      ],
      this.view.session,
    );
    const wanted = agents.filter((agent) => this.fits(agent, states.get(agent.id)));
    this.drawRows(wanted.slice(0, this.shown), states);
    this.more.hidden = wanted.length <= this.shown;
    this.table.hidden = wanted.length === 0;
    this.drawNothing(agents.length, wanted.length);
    this.drawPicked();
  }

  drawCounts(agents, states) {
    const counts = {};
    for (const key of states.values()) counts[key] = (counts[key] ?? 0) + 1;
    const current = agents.filter(({ id }) => isCurrent(states.get(id)));
    const connected = current.filter(({ connections }) => connections).length;
    setText(
      this.summary,
      current.length ? `${counted(current.length, "agent")} · ${connected.toLocaleString("en")} connected` : "",
    );
    const known = Object.entries(STANDINGS).filter(([key]) => key !== "pending");
    const chips = known.map(([key, label]) => ({ key, label, count: counts[key] ?? 0, mark: () => dot(key) }));
    this.chips.update([{ key: null, label: "Admitted", count: current.length }, ...chips], this.view.state);
    this.chips.element.hidden = agents.length === 0;
    this.search.hidden = this.session.hidden = agents.length === 0;
  }

  drawRows(agents, states) {
    const wanted = new Set(agents.map(({ id }) => id));
    for (const [id, row] of this.rows) if (!wanted.has(id)) this.drop(id, row);
    let before = null;
    for (const agent of agents) {
      const row = this.rows.get(agent.id) ?? this.add(agent);
      row.show(agent, states.get(agent.id), this.store.tables, this.now);
      const placed = row.line.parentNode && row.line.previousElementSibling === (before?.last ?? null);
      if (!placed && before) before.last.after(...row.elements);
      else if (!placed) this.body.prepend(...row.elements);
      before = row;
    }
  }

  add(agent) {
    const row = new AgentRow(agent, this.desk, {
      onPicked: () => this.drawPicked(),
      onRenamed: (from, to) => this.rename(from, to),
    });
    this.rows.set(agent.id, row);
    return row;
  }

  /** An agent that was renamed keeps its row and what is open in it. */
  rename(from, to) {
    const { agents } = this.store.tables;
    const row = this.rows.get(from);
    if (!row) return; // the change was told before the answer
    this.rows.delete(from);
    this.rows.set(to, row);
    agents.set(to, { ...agents.get(from), id: to, agent_id: to });
    agents.delete(from);
  }

  drop(id, row) {
    if (row.isOpen && this.store.tables.agents.has(id)) return; // it no longer fits the filter, but is being read
    const focused = row.elements.some((element) => element.contains(document.activeElement));
    for (const element of row.elements) element.remove();
    this.rows.delete(id);
    if (focused) this.search.focus();
  }

  drawNothing(total, fitting) {
    this.nothing.hidden = fitting > 0 || this.store.version === null;
    if (this.nothing.hidden) return;
    const say = total
      ? ["No agent matches. ", button("Show all", "wb-link", () => this.clear())]
      : ["No agent was admitted yet. Those that register wait in the inbox; Admin says how to connect one."];
    this.nothing.replaceChildren(...say);
  }

  drawPicked() {
    const rows = [...this.rows.values()];
    const number = this.picked().length;
    this.all.checked = rows.length > 0 && number === rows.length;
    this.all.indeterminate = number > 0 && number < rows.length;
    this.bulk.update(number);
  }

  fits(agent, state) {
    const { state: wanted, session, text } = this.view;
    if (wanted ? state !== wanted : !isCurrent(state)) return false;
    if (session !== EVERY && (agent.session_id ?? NONE) !== session) return false;
    return text.split(/\s+/).every((word) => haystack(agent).includes(word));
  }

  filter(change) {
    Object.assign(this.view, change);
    this.shown = STEP;
    this.update(Date.now());
    this.desk.announce(`${counted(this.rows.size, "agent")} shown.`);
  }

  clear() {
    this.search.value = "";
    this.filter({ state: null, text: "", session: EVERY });
    this.search.focus();
  }

  showMore() {
    this.shown += STEP;
    this.update(Date.now());
  }

  picked() {
    return [...this.rows.values()].filter((row) => row.pick.checked).map((row) => row.agent.id);
  }

  pickAll(on) {
    for (const row of this.rows.values()) row.pick.checked = on;
    this.drawPicked();
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

/** One agent's line, and below it what is opened. */
class AgentRow {
  constructor(agent, desk, { onPicked, onRenamed }) {
    this.desk = desk;
    this.onRenamed = onRenamed;
    this.agent = agent;
    /** @type {AgentDetails|null} */
    this.details = null;
    this.pick = checkbox(`Select ${agent.id}`, onPicked, false).box;
    this.opener = h("button", {
      class: "wb-opener",
      type: "button",
      "aria-expanded": "false",
      on: { click: () => this.toggle() },
    });
    this.name = h("span", { class: "wb-alias" });
    this.mark = dot("offline");
    this.word = h("span", {});
    this.cells = Object.fromEntries(
      ["persona", "permission", "session", "connections", "last-active"].map((key) => [
        key,
        h("td", { class: `wb-col-${key}` }),
      ]),
    );
    this.line = h(
      "tr",
      { class: "wb-table-row" },
      h("td", { class: "wb-col-pick" }, this.pick),
      h("td", { class: "wb-col-agent" }, this.opener, this.name),
      h("td", { class: "wb-col-state" }, h("span", { class: "wb-state" }, this.mark, this.word)),
      ...Object.values(this.cells),
    );
    this.below = h("tr", { class: "wb-table-details", hidden: true }, h("td", { colspan: COLUMNS.length + 1 }));
    this.below.addEventListener("keydown", (event) => event.key === "Escape" && this.toggle(false));
  }

  get elements() {
    return [this.line, this.below];
  }

  get last() {
    return this.below;
  }

  get isOpen() {
    return !this.below.hidden;
  }

  show(agent, state, tables, now) {
    this.agent = agent;
    const { cells } = this;
    setText(this.opener, agent.agent_id);
    setText(this.name, agent.name === agent.agent_id ? "" : agent.name);
    setAttribute(this.pick, "aria-label", `Select ${agent.agent_id}`);
    setAttribute(this.mark, "data-state", state);
    setText(this.word, STANDINGS[state]);
    setText(cells.persona, personaText(agent));
    setText(cells.permission, permissionText(agent));
    setText(cells.session, placeText(agent, tables));
    setText(cells.connections, agent.connections ? String(agent.connections) : "–");
    setText(cells["last-active"], agent.last_heartbeat ? age(agent.last_heartbeat, now) : "");
    setAttribute(cells.session, "title", sessionName(tables, agent.session_id));
    if (this.isOpen) this.details.update(agent, now);
  }

  toggle(open = !this.isOpen) {
    if (open) {
      this.details = new AgentDetails(this.agent, this.desk, (from, to) => this.onRenamed(from, to));
      this.below.firstChild.replaceChildren(this.details.element);
      this.details.load();
      this.details.drawFacts(Date.now());
    } else {
      this.below.firstChild.replaceChildren();
      this.opener.focus();
    }
    this.below.hidden = !open;
    this.line.classList.toggle("wb-opened", open);
    this.opener.setAttribute("aria-expanded", String(open));
  }
}

/** Putting many agents into a session or a team. */
class Placing {
  constructor(desk, picked) {
    this.desk = desk;
    this.picked = picked;
    this.asker = new Asker(desk);
    this.number = h("span", { class: "wb-muted wb-grow" });
    this.session = select([[EVERY, "Session unchanged"]], EVERY, {
      class: "wb-input wb-narrow",
      "aria-label": "Session for those selected",
      on: { change: () => this.refresh() },
    });
    this.team = select([[EVERY, "Team unchanged"]], EVERY, {
      class: "wb-input wb-narrow",
      "aria-label": "Team for those selected",
      on: { change: () => this.refresh() },
    });
    this.assign = button("Assign", "wb-button wb-primary", () => this.run());
    this.element = h(
      "div",
      { class: "wb-box wb-slim wb-stack", role: "group", "aria-label": "Assign many", hidden: true },
      h("div", { class: "wb-line" }, this.number, this.session, this.team, this.assign),
      this.asker.problem,
    );
  }

  update(number) {
    this.element.hidden = number === 0;
    setText(this.number, `${counted(number, "agent")} selected`);
    if (number) this.refresh();
  }

  refresh() {
    const { tables } = this.desk.store;
    const keep = (word) => [EVERY, `${word} unchanged`];
    setOptions(this.session, [["", [keep("Session"), [NONE, "No session"]]], ...sessionGroups(tables)]);
    const session = this.session.value;
    const teams =
      session === EVERY
        ? [...tables.teams.values()]
        : session
          ? [...teamsOf(tables, session), ...teamsOf(tables, null)]
          : teamsOf(tables, null);
    setOptions(this.team, [["", [keep("Team"), [NONE, "No team"], ...teams.map(({ id, name }) => [id, name])]]]);
    enable(session !== EVERY || this.team.value !== EVERY, this.assign);
  }

  async run() {
    const chosen = { session_id: this.session.value, team_id: this.team.value };
    const changes = Object.fromEntries(
      Object.entries(chosen)
        .filter(([, value]) => value !== EVERY)
        .map(([key, value]) => [key, value || null]),
    );
    const agent_ids = this.picked();
    const outcome = await this.asker.ask("assign_agents", { agent_ids, changes }, this.assign, "Assigning…");
    if (outcome) this.desk.announce(`${counted(agent_ids.length, "agent")} assigned.`);
    this.refresh();
  }
}

function oldestFirst(a, b) {
  return a.registered_at < b.registered_at ? -1 : Number(a.registered_at > b.registered_at);
}

function dot(state) {
  return h("span", { class: "wb-dot", "data-state": state, "aria-hidden": "true" });
}

function personaText({ persona_id: persona, role }) {
  if (!persona) return role;
  return persona === role || role === "worker" ? persona : `${persona}, ${role}`;
}

function permissionText({ tool, access_level: access }) {
  return `${tool} · ${ACCESS[access]?.toLowerCase() ?? access}`;
}

function placeText(agent, tables) {
  const place = tables.sessions.get(agent.session_id)?.name;
  const team = tables.teams.get(agent.team_id)?.name;
  return [place, team].filter(Boolean).join(" · ") || "–";
}

function haystack({ agent_id, name, persona_id, role, tool, client, address }) {
  return [agent_id, name, persona_id, role, tool, client, address].join("\n").toLowerCase();
}

/** Assigning the selected agents to a session or a team. */

import { button, enable, select, setOptions } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { RequestRunner } from "../link/request_runner.js";
import { offerUndo } from "../link/undo.js";
import { sessionOptions, teamsOf } from "../projects/lookup.js";

const UNCHANGED = "=";
const NONE = "";
/** The options before any session or team. */
const SESSIONS = [
  [UNCHANGED, "Session unchanged"],
  [NONE, "No session"],
];
const TEAMS = [
  [UNCHANGED, "Team unchanged"],
  [NONE, "No team"],
];

export class AssignForm {
  /** @param {any} desk @param {() => string[]} selected ids of the selected agents */
  constructor(desk, selected) {
    this.desk = desk;
    this.selected = selected;
    this.requests = new RequestRunner(desk);
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.session = this.choice(SESSIONS, "Session for the selected agents");
    this.team = this.choice(TEAMS, "Team for the selected agents");
    this.assign = button("Assign", "wb-button wb-primary", () => this.run());
    this.element = h(
      "div",
      { class: "wb-box wb-slim wb-stack", role: "group", "aria-label": "Assign the selected agents", hidden: true },
      h("div", { class: "wb-line" }, this.summary, this.session, this.team, this.assign),
      this.requests.errorBox,
    );
  }

  choice(options, name) {
    const on = { change: () => this.refresh() };
    return select(options, UNCHANGED, { class: "wb-input wb-narrow", "aria-label": name, on });
  }

  /** @param {number} count how many agents are selected */
  update(count) {
    this.element.hidden = count === 0;
    setText(this.summary, `${plural(count, "agent")} selected`);
    if (count) this.refresh();
  }

  refresh() {
    const { tables } = this.desk.store;
    setOptions(this.session, [["", SESSIONS], ...sessionOptions(tables)]);
    setOptions(this.team, [["", [...TEAMS, ...this.teams().map(({ id, name }) => [id, name])]]]);
    enable(this.session.value !== UNCHANGED || this.team.value !== UNCHANGED, this.assign);
  }

  /** The teams that agents of the chosen session can be in. */
  teams() {
    const { tables } = this.desk.store;
    const session = this.session.value;
    if (session === UNCHANGED) return [...tables.teams.values()];
    return [...(session ? teamsOf(tables, session) : []), ...teamsOf(tables, null)];
  }

  async run() {
    const chosen = { session_id: this.session.value, team_id: this.team.value };
    const changed = Object.entries(chosen).filter(([, value]) => value !== UNCHANGED);
    const changes = Object.fromEntries(changed.map(([name, value]) => [name, value || null]));
    const agent_ids = this.selected();
    const outcome = await this.requests.run("assign_agents", { agent_ids, changes }, this.assign, "Assigning…");
    if (outcome) this.offerUndo(agent_ids);
    this.refresh();
  }

  offerUndo(agents) {
    const changes = agents.map((id) => ({ subject: `agent:${id}`, kind: "agent.updated" }));
    offerUndo(this.element, { text: `${plural(agents.length, "agent")} assigned.`, changes });
  }
}

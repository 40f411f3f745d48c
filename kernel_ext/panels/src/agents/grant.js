/** Fields for what an agent is granted: a new one, one that is admitted already, many at once, or those a rule admits. */

import { field, input, select, setOptions } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { dateTime } from "../lib/format.js";
import { inOrder } from "../lib/sorting.js";
import { personaOptions } from "../link/choices.js";
import { sessionOptions, teamsOf } from "../projects/lookup.js";

const ROLES = { worker: "Worker: takes tasks", planner: "Planner: also creates tasks" };
export const TOOLS = { write: "Read and write", read: "Read only" };
export const ACCESS = { self_only: "Its own data", team_level: "Its team's data", session_level: "Its session's data" };
const SELF_TOOLS = { off: "No access", read: "May read it", write: "May change it" };
const OWN = { off: "which it cannot read", read: "which it can read", write: "which it can change" };
const DEFINES = { "": "No", true: "Yes" };
const EXPIRY = {
  3600: "In an hour",
  28800: "In 8 hours",
  86400: "In a day",
  604800: "In a week",
  2592000: "In 30 days",
};
const LABELS = {
  agent_id: "Agent id",
  name: "Name",
  persona_id: "Persona",
  role: "Role",
  session_id: "Session",
  team_id: "Team",
  tool: "Permission",
  access_level: "Sees work of",
  expires: "Expires",
  definition: "Definition",
  self_tools: "Its own definition",
  definitions: "Manages definitions",
  tools: "Tools it may call",
};
const NO_TOOLS = "None; or github, notebook, *";
/** Fields in which "none" is a choice. */
const CLEARABLE = new Set(["persona_id", "session_id", "team_id", "definition"]);
/** The field that an error is about, by its code. */
const FIELD_OF_ERROR = {
  AGENT_ID_TAKEN: "agent_id",
  BAD_AGENT_ID: "agent_id",
  PERSONA_NOT_FOUND: "persona_id",
  SESSION_NOT_FOUND: "session_id",
  TEAM_NOT_FOUND: "team_id",
  TEAM_ELSEWHERE: "team_id",
  DEFINITION_NOT_FOUND: "definition",
};
const TOOLS_HINT =
  "MCP servers, tools, notebook for the functions of notebooks, or * for all, with commas between them";
const UNCHANGED = "=";
const NONE = "";

/** What an agent was granted when it was admitted, in one line. @param {any} granted */
export function grantedText({ role, persona_id: persona, tool, access_level: sees, session, team, ...more }) {
  const { worktree, expires_at: until, definition, self_tools: own, definitions, tools } = more;
  const parts = [
    role === "planner" ? "Planner" : "Worker",
    persona ?? "no persona",
    TOOLS[tool].toLowerCase(),
    `sees work of ${ACCESS[sees].toLowerCase()}`,
    session ? `in ${session.project} / ${session.name}` : "in no session",
    team && `team ${team}`,
    worktree && `worktree ${worktree}`,
    definition && `definition ${definition} (${OWN[own]})`,
    definitions && "manages definitions",
    tools?.length && `tools ${tools.join(", ")}`,
    until && `until ${dateTime(until)}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/**
 * @typedef {object} Grant the values at first
 * @property {string} [agent_id] without it there is no such field
 * @property {string} [name] the same
 * @property {string|null} [persona_id]
 * @property {string} [role]
 * @property {string} [tool]
 * @property {string} [access_level]
 * @property {string|null} [session_id]
 * @property {string|null} [team_id]
 * @property {string|null} [expires_at]
 * @property {string|null} [definition] its id
 * @property {string} [self_tools]
 * @property {boolean} [definitions]
 * @property {string[]} [tools] names of servers and tools, `notebook`, or `*`
 */

export class GrantFields {
  /**
   * @param {import("../link/store.js").Tables} tables
   * @param {Grant} grant
   * @param {string|null} unchanged label of the option that leaves a value as it is, selected at first; null: there is
   *   no such option, and the fields show the grant
   */
  constructor(tables, grant, unchanged = null) {
    this.tables = tables;
    this.grant = grant;
    this.keep = unchanged === null ? [] : [[UNCHANGED, unchanged]];
    this.roleChosen = false;
    this.controls = this.make();
    this.first = Object.values(this.controls)[0];
    this.fields = Object.fromEntries(
      Object.entries(this.controls).map(([name, control]) => [name, field(LABELS[name], control)]),
    );
    this.element = h("div", { class: "wb-fields" }, ...Object.values(this.fields));
    this.controls.persona_id.addEventListener("change", () => this.followPersona());
    this.controls.role.addEventListener("change", () => (this.roleChosen = true));
    this.controls.session_id.addEventListener("change", () => this.followSession());
    this.element.addEventListener("change", () => this.showRelevant());
    this.showRelevant();
    this.initial = this.values();
  }

  make() {
    const { grant, keep } = this;
    const none = [NONE, "None"];
    const controls = {};
    if (grant.agent_id !== undefined) controls.agent_id = input(grant.agent_id, { maxlength: 64 });
    if (grant.name !== undefined) controls.name = input(grant.name, { maxlength: 100 });
    controls.persona_id = select(
      [...keep, none, ...personaOptions(this.tables, grant.persona_id)],
      this.value(grant.persona_id),
    );
    controls.role = select([...keep, ...Object.entries(ROLES)], this.value(grant.role ?? "worker"));
    controls.session_id = select([], NONE);
    controls.team_id = select([], NONE);
    controls.tool = select([...keep, ...Object.entries(TOOLS)], this.value(grant.tool ?? "write"));
    controls.access_level = select([...keep, ...Object.entries(ACCESS)], this.value(grant.access_level ?? "self_only"));
    controls.expires = select([...keep, [NONE, "Never"], ...this.expiries()], this.value(grant.expires_at));
    controls.definition = select([...keep, none, ...this.definitions()], this.value(grant.definition));
    controls.self_tools = select([...keep, ...Object.entries(SELF_TOOLS)], this.value(grant.self_tools ?? "off"));
    controls.definitions = select([...keep, ...Object.entries(DEFINES)], this.value(grant.definitions ? "true" : ""));
    const placeholder = keep.length ? keep[0][1] : NO_TOOLS;
    controls.tools = input((grant.tools ?? []).join(", "), { maxlength: 2_000, placeholder, title: TOOLS_HINT });
    this.fillSessions(controls.session_id, this.value(grant.session_id));
    this.fillTeams(controls.team_id, controls.session_id.value, this.value(grant.team_id));
    return controls;
  }

  /** Hide what makes no difference: the fields of a definition without one, and what only a planner may do. */
  showRelevant() {
    const { definition, self_tools: own, definitions: manages, role } = this.controls;
    this.fields.definition.hidden = definition.options.length <= this.keep.length + 1;
    this.fields.self_tools.hidden = this.fields.definition.hidden || (definition.value === NONE && own.value === "off");
    this.fields.definitions.hidden = role.value === "worker" && manages.value === NONE;
  }

  /** Bring the options up to date. What was chosen stays chosen. */
  refresh() {
    const { session_id, team_id, definition } = this.controls;
    setOptions(definition, [["", [...this.keep, [NONE, "None"], ...this.definitions()]]]);
    this.showRelevant();
    this.fillSessions(session_id, session_id.value);
    this.fillTeams(team_id, session_id.value, team_id.value);
  }

  /** The values that were changed, as operations take them; null clears. */
  choices() {
    const values = this.values();
    const changed = Object.entries(values).filter(
      ([name, value]) => value !== UNCHANGED && value !== this.initial[name],
    );
    const choices = {};
    for (const [name, value] of changed) {
      if (name === "expires")
        Object.assign(choices, value ? { expires_in_seconds: Number(value) } : { expires_at: null });
      else if (name === "definitions") choices.definitions = value === "true";
      else if (name === "tools") choices.tools = namesIn(value);
      else if (value || CLEARABLE.has(name)) choices[name] = value || null;
    }
    return choices;
  }

  /** The field that an error is about. @param {{code: string, details?: any}} error @returns {HTMLElement|null} */
  fieldOf({ code, details }) {
    const [name] = (details?.problems?.[0]?.field ?? "").split(".");
    return this.controls[FIELD_OF_ERROR[code] ?? name] ?? null;
  }

  values() {
    return Object.fromEntries(Object.entries(this.controls).map(([name, control]) => [name, control.value.trim()]));
  }

  /** What a field shows at first. */
  value(granted) {
    return this.keep.length ? UNCHANGED : (granted ?? NONE);
  }

  /** The definitions by id; a granted one is among them even if its files are gone. */
  definitions() {
    const rows = [...this.tables.definitions.values()].filter(({ definition_id: id }) => id);
    const options = rows
      .map(({ definition_id: id, name }) => [id, name])
      .sort(([, one], [, other]) => inOrder(one, other));
    const { definition: id } = this.grant;
    return id && !options.some(([other]) => other === id) ? [[id, id], ...options] : options;
  }

  expiries() {
    const { expires_at: until } = this.grant;
    return [...(until ? [[until, dateTime(until)]] : []), ...Object.entries(EXPIRY)];
  }

  fillSessions(control, value) {
    setOptions(control, [["", [...this.keep, [NONE, "None"]]], ...sessionOptions(this.tables)], value);
  }

  /** The teams of the session, and those in no session; of an unchanged session, all of them. */
  fillTeams(control, session, value) {
    const unchanged = session === UNCHANGED;
    const own = unchanged ? [...this.tables.teams.values()] : session ? teamsOf(this.tables, session) : [];
    const free = unchanged ? [] : teamsOf(this.tables, null);
    const label = ({ name, session: of }) => (unchanged && of ? `${of} / ${name}` : name);
    const options = [...own, ...free].map((team) => [team.id, label(team)]);
    setOptions(control, [["", [...this.keep, [NONE, "None"], ...options]]], value);
  }

  /** A persona proposes a role, unless one was chosen. */
  followPersona() {
    const role = this.tables.personas.get(this.controls.persona_id.value)?.role;
    if (role && !this.roleChosen && !this.keep.length) this.controls.role.value = role;
    this.showRelevant();
  }

  followSession() {
    this.fillTeams(this.controls.team_id, this.controls.session_id.value, this.controls.team_id.value);
  }
}

/** Names with commas between them, as a list. @param {string} text */
function namesIn(text) {
  const names = text.split(",").map((name) => name.trim());
  return names.filter(Boolean);
}

/** What an agent is granted, as fields: for one that comes, for one that is here, for many, and for rules. */

import { field, input, select, setOptions } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { sessionGroups, teamsOf } from "../projects/places.js";
import { moment } from "../lib/format.js";

export const ROLES = { worker: "Worker: takes tasks", planner: "Planner: also makes tasks" };
export const TOOLS = { write: "Read and write", read: "Read only" };
export const ACCESS = { self_only: "Itself", team_level: "Its team", session_level: "Its session" };
const EXPIRY = {
  3600: "In an hour",
  28800: "In 8 hours",
  86400: "In a day",
  604800: "In a week",
  2592000: "In 30 days",
};
const KEEP = "=";
const NONE = "";

/** Error codes, and the field each is about. */
const ABOUT = {
  AGENT_ID_TAKEN: "agent_id",
  BAD_AGENT_ID: "agent_id",
  PERSONA_NOT_FOUND: "persona_id",
  SESSION_NOT_FOUND: "session_id",
  TEAM_NOT_FOUND: "team_id",
  TEAM_ELSEWHERE: "team_id",
};

/**
 * @typedef {object} Start what the fields say at first
 * @property {string} [agent_id] without it there is no such field
 * @property {string} [name] the same
 * @property {string|null} [persona_id]
 * @property {string} [role]
 * @property {string} [tool]
 * @property {string} [access_level]
 * @property {string|null} [session_id]
 * @property {string|null} [team_id]
 * @property {string|null} [expires_at]
 */

export class GrantFields {
  /**
   * @param {import("../link/store.js").Tables} tables
   * @param {Start} start
   * @param {string|null} keep what the fields say when they change nothing; null: they say what is
   */
  constructor(tables, start, keep = null) {
    this.tables = tables;
    this.start = start;
    this.keep = keep;
    this.roleTouched = false;
    this.controls = this.make();
    this.first = Object.values(this.controls)[0];
    this.element = h(
      "div",
      { class: "wb-fields" },
      ...Object.entries(this.controls).map(([name, control]) => field(LABELS[name], control)),
    );
    this.controls.persona_id.addEventListener("change", () => this.followPersona());
    this.controls.role.addEventListener("change", () => (this.roleTouched = true));
    this.controls.session_id.addEventListener("change", () => this.followSession());
    this.asked = this.values();
  }

  make() {
    const { start } = this;
    const made = {};
    if (start.agent_id !== undefined) made.agent_id = input(start.agent_id, { maxlength: 64 });
    if (start.name !== undefined) made.name = input(start.name, { maxlength: 100 });
    made.persona_id = select([...this.unchanged(), [NONE, "None"], ...this.personas()], this.at(start.persona_id));
    made.role = select([...this.unchanged(), ...Object.entries(ROLES)], this.at(start.role ?? "worker"));
    made.session_id = select([], NONE);
    made.team_id = select([], NONE);
    made.tool = select([...this.unchanged(), ...Object.entries(TOOLS)], this.at(start.tool ?? "write"));
    made.access_level = select(
      [...this.unchanged(), ...Object.entries(ACCESS)],
      this.at(start.access_level ?? "self_only"),
    );
    made.expires = select([...this.unchanged(), [NONE, "Never"], ...this.expiries()], this.at(start.expires_at));
    this.fillSessions(made.session_id, this.at(start.session_id));
    this.fillTeams(made.team_id, made.session_id.value, this.at(start.team_id));
    return made;
  }

  /** Bring what can be chosen up to date; what was chosen stays. */
  refresh() {
    const { session_id, team_id } = this.controls;
    this.fillSessions(session_id, session_id.value);
    this.fillTeams(team_id, session_id.value, team_id.value);
  }

  /** Only what was changed, as operations take it; null clears. */
  choices() {
    const values = this.values();
    const changed = Object.entries(values).filter(([name, value]) => value !== KEEP && value !== this.asked[name]);
    const choices = {};
    for (const [name, value] of changed) {
      if (name === "expires")
        Object.assign(choices, value ? { expires_in_seconds: Number(value) } : { expires_at: null });
      else if (value || CLEARABLE.has(name)) choices[name] = value || null;
    }
    return choices;
  }

  /** The field that an error is about. @param {{code: string, details?: any}} error */
  fieldOf({ code, details }) {
    return this.controls[ABOUT[code] ?? details?.problems?.[0]?.field] ?? null;
  }

  values() {
    return Object.fromEntries(Object.entries(this.controls).map(([name, control]) => [name, control.value.trim()]));
  }

  unchanged() {
    return this.keep === null ? [] : [[KEEP, this.keep]];
  }

  at(value) {
    return this.keep === null ? (value ?? NONE) : KEEP;
  }

  personas() {
    const known = [...this.tables.personas.values()].map(({ id, name }) => [id, name]);
    const { persona_id: asked } = this.start;
    return asked && !this.tables.personas.has(asked) ? [[asked, asked], ...known] : known;
  }

  expiries() {
    const { expires_at: until } = this.start;
    return [...(until ? [[until, moment(until)]] : []), ...Object.entries(EXPIRY)];
  }

  fillSessions(control, value) {
    setOptions(control, [["", [...this.unchanged(), [NONE, "None"]]], ...sessionGroups(this.tables)], value);
  }

  fillTeams(control, session, value) {
    const here = session === KEEP ? [...this.tables.teams.values()] : session ? teamsOf(this.tables, session) : [];
    const free = session === KEEP ? [] : teamsOf(this.tables, null);
    const options = [...here, ...free].map(({ id, name, session: of }) => [
      id,
      session === KEEP && of ? `${of} / ${name}` : name,
    ]);
    setOptions(control, [["", [...this.unchanged(), [NONE, "None"], ...options]]], value);
  }

  followPersona() {
    const role = this.tables.personas.get(this.controls.persona_id.value)?.role;
    if (role && !this.roleTouched && this.keep === null) this.controls.role.value = role;
  }

  followSession() {
    this.fillTeams(this.controls.team_id, this.controls.session_id.value, this.controls.team_id.value);
  }
}

const CLEARABLE = new Set(["persona_id", "session_id", "team_id"]);
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
};

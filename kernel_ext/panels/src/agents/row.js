/** One agent in the table, and its details below it when they are open. */

import { checkbox } from "../lib/controls.js";
import { h, setAttribute, setText } from "../lib/dom.js";
import { age } from "../lib/format.js";
import { sessionPath } from "../projects/lookup.js";
import { AgentDetails } from "./details.js";
import { ACCESS } from "./grant.js";
import { AGENT_STATES } from "./state.js";

/** Columns by the name of their class. */
export const COLUMNS = {
  agent: "Agent",
  state: "State",
  persona: "Persona",
  permission: "Permission",
  session: "Session",
  connections: "Connections",
  "last-active": "Last active",
};

export class AgentRow {
  /** @param {any} agent its row @param {any} desk @param {{onSelect: () => void, onRename: (from: string, to: string) => void}} on */
  constructor(agent, desk, { onSelect, onRename }) {
    this.agent = agent;
    this.desk = desk;
    this.onRename = onRename;
    /** @type {AgentDetails|null} */
    this.details = null;
    this.checkbox = checkbox(`Select ${agent.id}`, onSelect, false).box;
    this.opener = h("button", {
      class: "wb-opener",
      type: "button",
      "aria-expanded": "false",
      on: { click: () => this.toggle() },
    });
    this.name = h("span", { class: "wb-alias" });
    this.dot = stateDot("offline");
    this.state = h("span", {});
    this.cells = Object.fromEntries(Object.keys(COLUMNS).map((key) => [key, h("td", { class: `wb-col-${key}` })]));
    this.cells.agent.append(this.opener, this.name);
    this.cells.state.append(h("span", { class: "wb-state" }, this.dot, this.state));
    const pick = h("td", { class: "wb-col-pick" }, this.checkbox);
    this.line = h("tr", { class: "wb-table-row" }, pick, ...Object.values(this.cells));
    this.place = h("td", { colspan: Object.keys(COLUMNS).length + 1 });
    this.below = h("tr", { class: "wb-table-details", hidden: true }, this.place);
    this.below.addEventListener("keydown", (event) => event.key === "Escape" && this.toggle(false));
    this.elements = [this.line, this.below];
  }

  get isOpen() {
    return !this.below.hidden;
  }

  /** @param {any} agent @param {keyof typeof AGENT_STATES} state @param {import("../link/store.js").Tables} tables @param {number} now */
  show(agent, state, tables, now) {
    this.agent = agent;
    const { cells } = this;
    setText(this.opener, agent.agent_id);
    setText(this.name, agent.name === agent.agent_id ? "" : agent.name);
    setAttribute(this.checkbox, "aria-label", `Select ${agent.agent_id}`);
    setAttribute(this.dot, "data-state", state);
    setText(this.state, AGENT_STATES[state]);
    setText(cells.persona, personaText(agent));
    setText(cells.permission, `${agent.tool} · ${ACCESS[agent.access_level]?.toLowerCase() ?? agent.access_level}`);
    setText(cells.session, placeText(agent, tables));
    setAttribute(cells.session, "title", sessionPath(tables, agent.session_id));
    setText(cells.connections, agent.connections ? String(agent.connections) : "–");
    setText(cells["last-active"], agent.last_heartbeat ? age(agent.last_heartbeat, now) : "");
    if (this.isOpen) this.details.update(agent, now);
  }

  toggle(open = !this.isOpen) {
    if (open) {
      this.details = new AgentDetails(this.agent, this.desk, this.onRename);
      this.place.replaceChildren(this.details.element);
      this.details.load();
      this.details.drawFacts(Date.now());
    } else {
      this.place.replaceChildren();
      this.opener.focus();
    }
    this.below.hidden = !open;
    this.line.classList.toggle("wb-opened", open);
    this.opener.setAttribute("aria-expanded", String(open));
  }
}

/** What the table is sorted by. @param {string} key of a column @param {any} agent @param {string} state @param {any} tables */
export function sortValue(key, agent, state, tables) {
  const values = {
    agent: agent.agent_id,
    state: Object.keys(AGENT_STATES).indexOf(state),
    persona: personaText(agent),
    permission: agent.tool,
    session: sessionPath(tables, agent.session_id),
    connections: agent.connections,
    "last-active": agent.last_heartbeat && -Date.parse(agent.last_heartbeat),
  };
  return values[key];
}

/** @param {string} state */
export function stateDot(state) {
  return h("span", { class: "wb-dot", "data-state": state, "aria-hidden": "true" });
}

function personaText({ persona_id: persona, role }) {
  if (!persona) return role;
  return persona === role || role === "worker" ? persona : `${persona}, ${role}`;
}

function placeText(agent, tables) {
  const session = tables.sessions.get(agent.session_id)?.name;
  const team = tables.teams.get(agent.team_id)?.name;
  return [session, team].filter(Boolean).join(" · ") || "–";
}

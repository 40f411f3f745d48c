/** The columns of the table of agents. */

import { Dot, html } from "../components/ui.js";
import { age } from "../lib/format.js";
import { untilText } from "../models/holds.js";
import { sessionPath } from "../projects/lookup.js";
import { ACCESS } from "./grant.js";
import { AGENT_STATES, agentState } from "./state.js";

const ORDER = Object.keys(AGENT_STATES);

/** @param {import("../link/store.js").Tables} tables @param {number} now in ms @returns {import("../components/data_table.js").Column[]} */
export function columnsOf(tables, now) {
  const state = (agent) => agentState(agent, now);
  const path = (agent) => sessionPath(tables, agent.session_id);
  return [
    { key: "agent", label: "Agent", value: ({ agent_id: id }) => id, cell: names },
    {
      key: "state",
      label: "State",
      value: (agent) => ORDER.indexOf(state(agent)),
      cell: (agent) => stateMark(state(agent), agent),
      title: ({ held_for: reason }) => reason,
    },
    { key: "persona", label: "Persona", value: personaText },
    { key: "permission", label: "Permission", value: ({ tool }) => tool, cell: permissionText },
    {
      key: "session",
      label: "Session",
      wide: true,
      optional: path,
      value: path,
      cell: (agent) => placeText(agent, tables),
      title: path,
    },
    {
      key: "connections",
      optional: ({ connections }) => connections,
      label: "Connections",
      value: ({ connections }) => connections,
      cell: ({ connections }) => connections || "–",
    },
    {
      key: "last-active",
      label: "Last active",
      value: ({ last_heartbeat: at }) => at && -Date.parse(at),
      cell: ({ last_heartbeat: at }) => at && age(at, now),
    },
  ];
}

function names({ agent_id: id, name, machine }, opener) {
  const alias = [name !== id && name, machine && `on ${machine}`].filter(Boolean).join(" · ");
  return [opener, html`<span class="wb-alias">${alias}</span>`];
}

function stateMark(state, agent) {
  const label = state === "held" ? `${AGENT_STATES.held} ${untilText(agent.held_until)}` : AGENT_STATES[state];
  return html`<span class="wb-state"><${Dot} state=${state} /><span>${label}</span></span>`;
}

function personaText({ persona_id: persona, role }) {
  if (!persona) return role;
  return persona === role || role === "worker" ? persona : `${persona}, ${role}`;
}

function permissionText({ tool, access_level: access }) {
  return `${tool} · ${ACCESS[access]?.toLowerCase() ?? access}`;
}

function placeText(agent, tables) {
  const session = tables.sessions.get(agent.session_id)?.name;
  const team = tables.teams.get(agent.team_id)?.name;
  return [session, team].filter(Boolean).join(" · ") || "–";
}

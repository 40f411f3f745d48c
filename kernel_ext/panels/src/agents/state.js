/** The state of an agent, the names of events, and what it says it can do, as a person reads them. */

import { labelled } from "../lib/blocks.js";
import { h } from "../lib/dom.js";
import { oneLine } from "../lib/format.js";

/** Labels by state, in the order in which a person looks for them. */
export const AGENT_STATES = {
  active: "Active",
  silent: "Silent",
  idle: "Idle",
  held: "Waits",
  inactive: "Inactive",
  terminated: "Ended",
  pending: "Waiting",
  expired: "Expired",
  revoked: "Revoked",
  rejected: "Rejected",
};

const EXCLUDED = new Set(["revoked", "rejected"]);
const NOUNS = { agent: "", approval: "approval ", task: "task " };

/** @param {any} agent @param {number} now in ms @returns {keyof typeof AGENT_STATES} */
export function agentState(agent, now) {
  const { registration_status: registration, expires_at: until } = agent;
  if (registration === "pending" || EXCLUDED.has(registration)) return registration;
  if (until && Date.parse(until) <= now) return "expired";
  return agent.presence ?? "inactive";
}

/** Whether an agent in this state is admitted. @param {keyof typeof AGENT_STATES} state */
export function isAdmitted(state) {
  return state !== "pending" && !EXCLUDED.has(state);
}

/** "token issued", from `agent.token_issued`. @param {string} kind */
export function eventLabel(kind) {
  const [noun, past = ""] = kind.split(".");
  return `${NOUNS[noun] ?? `${noun} `}${past.replaceAll("_", " ")}`;
}

/** "session: north → south", from a change in an agent's history. @param {{field: string, old: ?string, new: ?string}} change */
export function changeText({ field, old, new: value }) {
  return `${field}: ${old ?? "none"} → ${value ?? "none"}`;
}

const MOST = 12;

/** A value of any shape as one line: lists without brackets, the rest as JSON. @param {unknown} value @param {number} [limit] */
export function capabilityText(value, limit) {
  const plain = (item) => (typeof item === "string" ? item : JSON.stringify(item));
  return oneLine(Array.isArray(value) ? value.map(plain).join(", ") : value, limit);
}

/** Capabilities as a list with a label. @param {Record<string, unknown>|null} capabilities @returns {HTMLElement|null} */
export function capabilityList(capabilities) {
  const entries = Object.entries(capabilities ?? {}).slice(0, MOST);
  if (!entries.length) return null;
  const line = ([name, value]) =>
    h(
      "li",
      {},
      h("span", { class: "wb-muted wb-term" }, oneLine(name, 60)),
      h("code", { class: "wb-wrap" }, capabilityText(value)),
    );
  return labelled("Capabilities it reports", h("ul", { class: "wb-list" }, ...entries.map(line)));
}

/** The state of an agent, and the names of events, as a person reads them. Pure; the time now is an argument. */

/** Labels by state, in the order in which a person looks for them. */
export const AGENT_STATES = {
  active: "Active",
  idle: "Idle",
  offline: "Offline",
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
  return agent.presence ?? "offline";
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

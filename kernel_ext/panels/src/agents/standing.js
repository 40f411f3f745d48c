/** How an agent stands, in one word. Pure; the time now is an argument. */

/** Words by key, in the order a person asks for them. */
export const STANDINGS = {
  active: "Active",
  idle: "Idle",
  offline: "Offline",
  terminated: "Ended",
  pending: "Waiting",
  expired: "Expired",
  revoked: "Revoked",
  rejected: "Rejected",
};

const PAST = new Set(["revoked", "rejected"]);

/** @param {any} agent @param {number} now in ms @returns {keyof typeof STANDINGS} */
export function standing(agent, now) {
  const { registration_status: registration, expires_at: until } = agent;
  if (registration === "pending" || PAST.has(registration)) return registration;
  if (until && Date.parse(until) <= now) return "expired";
  return agent.presence ?? "offline";
}

/** Whether an agent is one to show unless it is asked for: those turned away and revoked are not. */
export function isCurrent(key) {
  return key !== "pending" && !PAST.has(key);
}

const NOUNS = { agent: "", approval: "approval ", task: "task " };

/** "token issued", from `agent.token_issued`. */
export function eventWords(kind) {
  const [noun, past = ""] = kind.split(".");
  return `${NOUNS[noun] ?? `${noun} `}${past.replaceAll("_", " ")}`;
}

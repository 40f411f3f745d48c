/** What the tables offer as options of a choice. Pure. */

import { inOrder } from "../lib/sorting.js";

/** @typedef {import("./store.js").Tables} Tables */

/**
 * The personas by name; the chosen one is among them even if it is gone.
 *
 * @param {Tables} tables
 * @param {string|null} [chosen] its id
 * @param {(id: string) => string} [labelOfLost]
 * @returns {[string, string][]}
 */
export function personaOptions(tables, chosen = null, labelOfLost = (id) => id) {
  const options = [...tables.personas.values()].map(({ id, name }) => [id, name]);
  return chosen && !tables.personas.has(chosen) ? [...options, [chosen, labelOfLost(chosen)]] : options;
}

/** The worktrees that agents may work in. @param {Tables} tables @returns {[string, string][]} */
export function worktreeOptions(tables) {
  const names = [...tables.worktrees.keys()].filter((name) => name !== "").sort(inOrder);
  return names.map((name) => [name, name]);
}

/** The agents. @param {Tables} tables @returns {[string, string][]} */
export function agentOptions(tables) {
  const names = [...tables.agents.values()].map(({ agent_id: name }) => name).sort(inOrder);
  return names.map((name) => [name, name]);
}

/** The words and icons of runs, and their values as text. Pure but for the icons' names. */

import { duration, oneLine } from "../lib/format.js";

export const RUN_STATES = {
  running: "Running",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
  lost: "Lost",
};
/** The most runs that are compared at once. */
export const MOST_COMPARED = 20;
const ICONS = { running: "in_progress", lost: "warning" };

/** @param {string} state of a run */
export function runIcon(state) {
  return ICONS[state] ?? state;
}

/** "0.0123", "warm" @param {unknown} value of a metric or parameter */
export function valueText(value) {
  if (typeof value !== "number" || Number.isInteger(value)) return oneLine(value ?? "", 60);
  return Math.abs(value) >= 1e-4 && Math.abs(value) < 1e6
    ? String(Number(value.toPrecision(5)))
    : value.toExponential(3);
}

/** "lr=0.1, seed=3" @param {Record<string, unknown>} parameters */
export function parametersText(parameters) {
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${valueText(value)}`)
    .join(", ");
}

/**
 * The names of the parameters in which these runs differ, and which are no lists or objects, in the order of the first run.
 * @param {any[]} runs @param {number} most
 */
export function varyingParameters(runs, most) {
  const names = [...new Set(runs.flatMap(({ parameters }) => Object.keys(parameters)))];
  const values = (name) => runs.map(({ parameters }) => parameters[name] ?? null);
  const isVarying = (name) => new Set(values(name)).size > 1 && values(name).every((value) => Object(value) !== value);
  return names.filter(isVarying).slice(0, most);
}

/** How long a run took, or takes. @param {any} run @param {number} now in ms */
export function took({ started_at: began, ended_at: ended }, now) {
  return duration((ended ? Date.parse(ended) : now) - Date.parse(began));
}

/** The names of the metrics that most of these runs have, in the order of the alphabet. @param {any[]} runs @param {number} most */
export function commonMetrics(runs, most) {
  const counts = new Map();
  for (const { metrics } of runs)
    for (const name of Object.keys(metrics)) counts.set(name, (counts.get(name) ?? 0) + 1);
  const ordered = [...counts].sort(([one, n], [other, m]) => m - n || (one < other ? -1 : 1));
  return ordered
    .slice(0, most)
    .map(([name]) => name)
    .sort();
}

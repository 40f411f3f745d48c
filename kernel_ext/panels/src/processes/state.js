/** The state of an agent's process, and what it uses, as a person reads it. Pure. */

import { byteSize, duration, ordinal, plural } from "../lib/format.js";

/** "Queued, 2nd", "Running", "Ended with 1" @param {any} process */
export function processLabel({ state, queue_place: place, exit_code: code }) {
  if (state === "queued") return place ? `Queued, ${ordinal(place)}` : "Queued";
  if (state === "running") return "Running";
  return code === null || code === undefined ? "Ended" : `Ended with ${code}`;
}

/** The state of its dot: a failure has its own. @param {any} process */
export function processDot({ state, exit_code: code }) {
  if (state === "running") return "active";
  if (state === "queued") return "pending";
  return code ? "rejected" : "inactive";
}

/**
 * How a process is confined: `missing` names what is not enforced.
 * @returns {{label: string, missing: string, complete: boolean}}
 */
export function confinementState(confinement) {
  const missing = confinement?.missing ?? [];
  if (!confinement?.enforced) {
    const everything = "it can do whatever you can do on this computer";
    return { label: "Not confined", missing: missing.join(", ") || everything, complete: false };
  }
  if (missing.length) return { label: "Partly confined", missing: missing.join(", "), complete: false };
  return { label: "Confined", missing: "", complete: true };
}

/**
 * What confines the commands of agents on this machine, by `get_confinement`.
 * @returns {{label: string, facts: [string, string|null][], complete: boolean}}
 */
export function wallsState({ mode, abi, enforced, missing, namespaces, unused }) {
  const holds = mode !== "off" && abi > 0;
  const complete = holds && !missing.length;
  const own = namespaces
    ? "with files, memory and a network of their own"
    : "with the machine's files, memory and network";
  const label = holds
    ? `Boxes of commands: ${complete ? "complete" : "in part"}, ${own}`
    : "Commands run without a box";
  const facts = [
    ["Holds", holds ? enforced.join("; ") : null],
    ["Does not hold", mode === "off" ? null : missing.join("; ") || null],
    ["Not used", unused.join(" ") || null],
  ];
  return { label, facts, complete };
}

/** For how many ms a process has been running, or ran; null before it is started. @param {any} process @param {number} now in ms */
export function uptimeMs({ spawned_at: from, ended_at: until }, now) {
  return from ? (until ? Date.parse(until) : now) - Date.parse(from) : null;
}

/** The same as text. @param {any} process @param {number} now in ms */
export function uptime(process, now) {
  const ms = process.state === "queued" ? null : uptimeMs(process, now);
  return ms === null ? "" : duration(ms);
}

/** Percent of one processor between two readings; what the second one says when there is only that. */
export function cpuPercent(before, after) {
  const ms = before ? after.readAt - before.readAt : 0;
  if (ms <= 0 || after.cpu_seconds < before.cpu_seconds) return after.cpu_percent;
  return (100_000 * (after.cpu_seconds - before.cpu_seconds)) / ms;
}

/** The limits that are set: "2 h 0 min of CPU, 4.0 GB of memory". @param {any} limits */
export function limitsText(limits) {
  const { cpu_seconds: cpu, memory_bytes: memory, wall_seconds: wall, tasks } = limits ?? {};
  return [
    cpu && `${duration(cpu * 1000)} of CPU`,
    memory && `${byteSize(memory)} of memory`,
    wall && `${duration(wall * 1000)} in total`,
    tasks && plural(tasks, "task"),
  ]
    .filter(Boolean)
    .join(", ");
}

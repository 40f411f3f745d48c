/** How the process of an agent stands, in words. Pure. */

import { counted, duration, nth } from "../lib/format.js";

const UNITS = ["B", "KB", "MB", "GB", "TB"];

/** "Queued, 2nd", "Running", "Ended with 1" @param {any} process */
export function processWords({ state, queue_place: place, exit_code: code }) {
  if (state === "queued") return place ? `Queued, ${nth(place)}` : "Queued";
  if (state === "running") return "Running";
  return code === null || code === undefined ? "Ended" : `Ended with ${code}`;
}

/** Which dot stands beside it: a failure is one of its own. @param {any} process */
export function processDot({ state, exit_code: code }) {
  if (state === "running") return "active";
  if (state === "queued") return "pending";
  return code ? "rejected" : "offline";
}

/** "Confined", "Partly confined", "Not confined"; `lacks` says what is missing. @returns {{word: string, lacks: string, whole: boolean}} */
export function confinementWords(confinement) {
  const missing = confinement?.missing ?? [];
  if (!confinement?.enforced)
    return {
      word: "Not confined",
      lacks: missing.join(", ") || "it can do what you can do on this computer",
      whole: false,
    };
  if (missing.length) return { word: "Partly confined", lacks: missing.join(", "), whole: false };
  return { word: "Confined", lacks: "", whole: true };
}

/** "48 MB" @param {number} bytes */
export function size(bytes) {
  let [value, unit] = [bytes, 0];
  while (value >= 1000 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value < 10 && unit ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

/** How long it has run, or ran. @param {any} process @param {number} now */
export function uptime({ state, spawned_at: from, ended_at: until }, now) {
  if (state === "queued" || !from) return "";
  return duration((until ? Date.parse(until) : now) - Date.parse(from));
}

/** Percent of one processor between two readings of a process; what it says itself when there is only one. */
export function cpuPercent(before, after) {
  const ms = before ? after.readAt - before.readAt : 0;
  return ms > 0 && after.cpu_seconds >= before.cpu_seconds
    ? (100_000 * (after.cpu_seconds - before.cpu_seconds)) / ms
    : after.cpu_percent;
}

/** Limits that were set, in words. @param {any} limits @returns {string} */
export function limitWords(limits) {
  const { cpu_seconds: cpu, memory_bytes: memory, wall_seconds: wall, tasks } = limits ?? {};
  return [
    cpu && `${duration(cpu * 1000)} of CPU`,
    memory && `${size(memory)} of memory`,
    wall && `${duration(wall * 1000)} in all`,
    tasks && counted(tasks, "task"),
  ]
    .filter(Boolean)
    .join(", ");
}

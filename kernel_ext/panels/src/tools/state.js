/** The kinds of tools, and the states of their calls, as a person reads them. */

import { html } from "../components/ui.js";

/** Labels of the kinds of tools, in the order in which a person looks for them. */
export const KINDS = {
  function: "Notebook",
  mcp: "MCP",
  trait: "Personality",
  definition: "Definition",
  operation: "Workbench",
};

/** Labels of the states of calls, in the order of a call's life. */
export const CALL_STATES = {
  waiting: "Waiting",
  running: "Running",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
  interrupted: "Interrupted",
};
const ICONS = { waiting: "question", running: "in_progress", interrupted: "cancelled" };

/** The name of an icon. @param {string} state of a call */
export function callIcon(state) {
  return ICONS[state] ?? state;
}

/** Where a tool comes from, in a word: the name of its MCP server, or what it is. @param {{kind?: string, source: string, server: string|null}} tool */
export function origin({ kind, source, server }) {
  return server ?? KINDS[kind] ?? (source === "mcp" ? KINDS.mcp : "local");
}

/** How far a call is, or was when it last said so. @param {any} call */
export function progressOf({ progress, progress_total: total, progress_message: message }) {
  return progressText(progress, total, message);
}

/** How far a call is: "40 %, reading"; null if it has not said so. @param {number|null} done @param {number|null} total @param {string|null} message */
export function progressText(done, total, message) {
  if (typeof done !== "number") return null;
  if (done === 0 && !total && message) return message;
  const share = total > 0 ? `${Math.round((100 * done) / total)} %` : done.toLocaleString("en");
  return [share, message].filter(Boolean).join(", ");
}

/** The name of a trait's tool. @param {string} agent @param {string} trait */
export function toolName(agent, trait) {
  return `${agent}__${trait}`;
}

/** Tools by kind and server, and by name. */
export function byOrigin(one, other) {
  const place = ({ kind }) => Object.keys(KINDS).indexOf(kind);
  return place(one) - place(other) || compare(one.server ?? "", other.server ?? "") || compare(one.name, other.name);
}

function compare(one, other) {
  return one < other ? -1 : Number(one > other);
}

const ELSEWHERE = { mcp: "Runs on an MCP server", trait: "Runs on another node of the network" };

/** The badge that tells tools of MCP servers from those that run here. @param {{of: any}} props a tool, or a call of one */
export function Origin({ of: tool }) {
  const where = tool.source === "mcp" ? (ELSEWHERE[tool.kind] ?? ELSEWHERE.mcp) : "Runs here";
  return html`<span class="wb-source" data-source=${tool.source} title=${where}>${origin(tool)}</span>`;
}

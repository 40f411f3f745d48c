/** The badge that tells tools of MCP servers from those that run here. */

import { h, setAttribute, setText } from "../lib/dom.js";
import { origin } from "./state.js";

const ELSEWHERE = { mcp: "Runs on an MCP server", trait: "Runs on another node of the network" };

/** @returns {HTMLElement} */
export function originBadge() {
  return h("span", { class: "wb-source" });
}

/** @param {HTMLElement} badge @param {any} tool or a call of one */
export function showOrigin(badge, tool) {
  setText(badge, origin(tool));
  setAttribute(badge, "data-source", tool.source);
  setAttribute(badge, "title", tool.source === "mcp" ? (ELSEWHERE[tool.kind] ?? ELSEWHERE.mcp) : "Runs here");
}

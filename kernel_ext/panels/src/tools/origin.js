/** The badge that tells tools of MCP servers from those that run here. */

import { html } from "../components/ui.js";
import { origin } from "./state.js";

const ELSEWHERE = { mcp: "Runs on an MCP server", trait: "Runs on another node of the network" };

/** @param {{of: any}} props a tool, or a call of one */
export function Origin({ of: tool }) {
  const where = tool.source === "mcp" ? (ELSEWHERE[tool.kind] ?? ELSEWHERE.mcp) : "Runs here";
  return html`<span class="wb-source" data-source=${tool.source} title=${where}>${origin(tool)}</span>`;
}

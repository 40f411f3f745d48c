/** One tool in the catalogue, and what is below it when it is open. */

import { h, setText } from "../lib/dom.js";
import { originBadge, showOrigin } from "./origin_badge.js";
import { ToolDetails } from "./tool_details.js";

/** Columns by the name of their class. */
export const COLUMNS = { tool: "Tool", origin: "Source", hints: "Effects", about: "Description" };

export class ToolRow {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    /** @type {ToolDetails|null} */
    this.details = null;
    this.opener = h("button", {
      class: "wb-opener",
      type: "button",
      "aria-expanded": "false",
      on: { click: () => this.toggle() },
    });
    this.badge = originBadge();
    this.cells = Object.fromEntries(Object.keys(COLUMNS).map((key) => [key, h("td", { class: `wb-col-${key}` })]));
    this.cells.tool.append(this.opener);
    this.cells.origin.append(this.badge);
    this.line = h("tr", { class: "wb-table-row" }, ...Object.values(this.cells));
    this.place = h("td", { colspan: Object.keys(COLUMNS).length });
    this.below = h("tr", { class: "wb-table-details", hidden: true }, this.place);
    this.below.addEventListener("keydown", (event) => this.onKey(event));
    this.elements = [this.line, this.below];
  }

  get isOpen() {
    return !this.below.hidden;
  }

  /** @param {any} tool @param {boolean} enabled whether requests can be sent */
  show(tool, enabled) {
    this.tool = tool;
    this.enabled = enabled;
    const { name, title, description, problem } = tool;
    setText(this.opener, name);
    this.opener.title = title;
    showOrigin(this.badge, tool);
    setText(this.cells.hints, hintOf(tool));
    setText(this.cells.about, problem ? `Cannot be called now: ${problem}` : description);
    this.line.classList.toggle("wb-unavailable", Boolean(problem));
    this.details?.update(tool, enabled);
  }

  toggle(open = !this.isOpen) {
    this.stop();
    if (open) {
      this.details = new ToolDetails(this.tool, this.desk);
      this.place.replaceChildren(this.details.element);
      this.details.update(this.tool, this.enabled);
    } else {
      this.place.replaceChildren();
      this.opener.focus();
    }
    this.below.hidden = !open;
    this.line.classList.toggle("wb-opened", open);
    this.opener.setAttribute("aria-expanded", String(open));
  }

  onKey(event) {
    if (event.key === "Escape" && !event.defaultPrevented && !event.target.matches(".wb-input")) this.toggle(false);
  }

  /** Do not follow the tool any more. */
  stop() {
    this.details?.stop();
    this.details = null;
  }
}

/** What a tool says about what it changes. */
export function hintOf({ read_only: reads, destructive }) {
  if (reads) return "reads";
  return destructive ? "may delete" : "changes";
}

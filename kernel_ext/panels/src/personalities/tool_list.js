/** The tools of a personality: what each takes, and a form to try it, as in the catalogue of tools. */

import { button } from "../lib/controls.js";
import { h, setAttribute, setText } from "../lib/dom.js";
import { oneLine } from "../lib/format.js";
import { KeyedList } from "../lib/keyed_list.js";
import { ToolDetails } from "../tools/tool_details.js";
import { valueBlock } from "../contents/values.js";
import { toolName } from "../tools/state.js";
import { isLatest } from "./state.js";

export class ToolList {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.none = h("p", { class: "wb-muted" }, "It offers no tools.");
    this.list = h("ul", { class: "wb-entries", "aria-label": "Tools" });
    this.rows = new KeyedList(this.list, () => new TraitTool(desk), { onRemove: (row) => row.stop() });
    this.element = h("div", { class: "wb-stack" }, h("h4", { class: "wb-strong" }, "Tools"), this.none, this.list);
  }

  clear() {
    this.rows.show([], () => {});
  }

  /** @param {any} personality as `get_personality` gives it @param {boolean} enabled whether requests can be sent */
  show(personality, enabled) {
    const tools = new Map(
      personality.profile.traits.filter(({ is_callable: tool }) => tool).map((tool) => [tool.name, tool]),
    );
    this.none.hidden = tools.size > 0;
    this.rows.show([...tools.keys()], (row, name) => row.show(tools.get(name), personality, enabled));
  }
}

/** One tool in the list. */
class TraitTool {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    /** @type {ToolDetails|null} */
    this.details = null;
    this.opener = button("", "wb-opener", () => this.toggle());
    this.opener.setAttribute("aria-expanded", "false");
    this.about = h("span", { class: "wb-muted wb-grow wb-cut" });
    this.below = h("div", { class: "wb-trait-tool wb-stack", hidden: true });
    this.below.addEventListener("keydown", (event) => this.onKey(event));
    this.element = h("li", {}, h("div", { class: "wb-entry" }, this.opener, this.about), this.below);
    this.elements = [this.element];
  }

  /** The tool in the catalogue, if it can be called now. */
  get tool() {
    const { personality, trait } = this;
    if (!isLatest(personality)) return null;
    return this.desk.store.tables.catalogue.get(toolName(personality.name, trait.name)) ?? null;
  }

  show(trait, personality, enabled) {
    Object.assign(this, { trait, personality, enabled });
    setText(this.opener, trait.name);
    setText(this.about, oneLine(trait.description ?? ""));
    if (!this.below.hidden) this.drawBelow();
  }

  toggle(open = this.below.hidden) {
    this.below.hidden = !open;
    setAttribute(this.opener, "aria-expanded", open);
    if (open) return this.drawBelow();
    this.stop();
    this.below.replaceChildren();
    return this.opener.focus();
  }

  /** A form to try it; of a tool that cannot be called here, what it takes. */
  drawBelow() {
    const { tool } = this;
    if (tool && !this.details) {
      this.details = new ToolDetails(tool, this.desk);
      this.below.replaceChildren(this.details.element);
    }
    if (tool) this.details.update(tool, this.enabled);
    else if (!this.details) this.below.replaceChildren(...this.schemas());
  }

  schemas() {
    const { description, input_schema: schema } = this.trait;
    const why = isLatest(this.personality)
      ? "It cannot be called from here now."
      : "This is an older version: only the latest one can be called.";
    const { announce } = this.desk;
    const takes = schema
      ? valueBlock(schema, "Copy the schema of the arguments", announce)
      : "Its arguments are not described: it takes any object.";
    return [h("p", { class: "wb-prose" }, description ?? ""), h("p", { class: "wb-muted" }, why), h("div", {}, takes)];
  }

  onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented || event.target.matches(".wb-input")) return;
    event.preventDefault();
    this.toggle(false);
  }

  /** Do not follow the tool any more. */
  stop() {
    this.details?.stop();
    this.details = null;
  }
}

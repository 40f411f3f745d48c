/** The catalogue: every tool that can be called here, to search and filter, to read, and to try. */

import { Chips } from "../lib/chips.js";
import { button, moveBetweenRows, searchField, select, setOptions } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { KeyedList } from "../lib/keyed_list.js";
import { Sorting } from "../lib/sorting.js";
import { KINDS, byOrigin, origin } from "./state.js";
import { COLUMNS, ToolRow, hintOf } from "./tool_row.js";

const STEP = 50;
const EVERY = "";
/** What the columns are sorted by; without an order, tools are by origin and name. */
const VALUES = { tool: ({ name }) => name, origin, hints: hintOf };
const SORTED = Object.fromEntries(Object.keys(VALUES).map((key) => [key, COLUMNS[key]]));

export class Catalogue {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.filters = { kind: null, server: EVERY, text: "" };
    this.limit = STEP;
    this.search = searchField("Filter tools", "Filter tools by name, description or server", {
      input: () => this.filter({ text: this.search.value.trim().toLowerCase() }),
    });
    this.chips = new Chips("Filter tools by kind", (kind) => this.filter({ kind }));
    const change = () => this.filter({ server: this.server.value });
    this.server = select([], EVERY, {
      class: "wb-input wb-narrow",
      "aria-label": "Filter tools by server",
      on: { change },
    });
    this.errors = h("div", { class: "wb-stack" });
    this.empty = h("p", { class: "wb-empty" });
    this.more = button("Show more", "wb-button", () => {
      this.limit += STEP;
      this.update(this.enabled);
    });
    const parts = [h("div", { class: "wb-line" }, this.chips.element, this.server), this.errors, this.empty];
    this.element = h("div", { class: "wb-stack" }, ...parts, this.table(), this.more);
  }

  table() {
    this.sorting = new Sorting(SORTED, () => this.filter({}));
    const heads = Object.entries(COLUMNS).map(([key, label]) => {
      const attributes = { scope: "col", class: `wb-col-${key}` };
      return key in SORTED ? this.sorting.heading(key, "th", attributes) : h("th", attributes, label);
    });
    this.body = h("tbody", {});
    const on = { keydown: (event) => moveBetweenRows(event, this.body) };
    this.grid = h("table", { class: "wb-table wb-tools", on }, h("thead", {}, h("tr", {}, ...heads)), this.body);
    this.rows = new KeyedList(this.body, () => new ToolRow(this.desk), {
      // It no longer matches the filter, but it is being read or tried.
      keep: (id, row) => row.isOpen && this.desk.store.tables.catalogue.has(id),
      onRemove: (row, hadFocus) => {
        row.stop();
        if (hadFocus) this.search.focus();
      },
    });
    return this.grid;
  }

  /** @returns {any[]} */
  get tools() {
    return [...this.desk.store.tables.catalogue.values()].filter(({ name }) => name).sort(byOrigin);
  }

  get isSearchable() {
    return true;
  }

  summary() {
    return this.desk.store.loaded.has("catalogue") ? plural(this.tools.length, "tool") : "";
  }

  /** How many tools there are besides the operations of Workbench. */
  count() {
    return this.tools.filter(({ kind }) => kind !== "operation").length;
  }

  /** @param {boolean} enabled whether requests can be sent */
  update(enabled) {
    this.enabled = enabled;
    const { tools } = this;
    const { catalogue } = this.desk.store.tables;
    this.drawFilters(tools);
    const chosen = tools.filter((tool) => this.matches(tool));
    const matching = this.sorting.sorted(chosen, (tool, key) => VALUES[key](tool));
    this.rows.show(
      matching.slice(0, this.limit).map(({ id }) => id),
      (row, id) => row.show(catalogue.get(id), enabled),
    );
    this.more.hidden = matching.length <= this.limit;
    this.grid.hidden = matching.length === 0 && this.rows.items.size === 0;
    setText(this.errors, catalogue.get("")?.error.message ?? "");
    this.drawEmpty(tools.length, matching.length);
  }

  drawFilters(tools) {
    const count = (kind) => tools.filter((tool) => tool.kind === kind).length;
    const chips = Object.entries(KINDS).map(([key, label]) => ({ key, label, count: count(key) }));
    this.chips.update([{ key: null, label: "All", count: tools.length }, ...chips], this.filters.kind);
    const servers = [...new Set(tools.map(({ server }) => server).filter(Boolean))];
    setOptions(
      this.server,
      [["", [[EVERY, "All servers"], ...servers.map((name) => [name, name])]]],
      this.filters.server,
    );
    this.filters.server = this.server.value;
    this.server.hidden = servers.length === 0;
  }

  drawEmpty(total, matching) {
    this.empty.hidden = matching > 0 || !this.desk.store.loaded.has("catalogue");
    if (this.empty.hidden) return;
    const content = total
      ? ["No tool matches the filters. ", button("Show all", "wb-link", () => this.clear())]
      : ["There are no tools yet."];
    this.empty.replaceChildren(...content);
  }

  matches({ name, title, description, kind, server }) {
    const { kind: wanted, server: at, text } = this.filters;
    if (wanted !== null && kind !== wanted) return false;
    if (at !== EVERY && server !== at) return false;
    const about = [name, title, description, server].join("\n").toLowerCase();
    return text.split(/\s+/).every((word) => about.includes(word));
  }

  filter(change) {
    Object.assign(this.filters, change);
    this.limit = STEP;
    this.update(this.enabled);
    this.desk.announce(`${plural(this.rows.items.size, "tool")} shown.`);
  }

  clear() {
    this.search.value = "";
    this.filter({ kind: null, server: EVERY, text: "" });
    this.search.focus();
  }
}

/** The catalogue: every tool that can be called here, to search and filter, to read, and to try. */

import { DataTable } from "../components/data_table.js";
import { Chips, Choice } from "../components/filters.js";
import { Button, Embedded, html, render, useLayoutEffect, useOnce } from "../components/ui.js";
import { searchField } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { KINDS, Origin, byOrigin, origin } from "./state.js";
import { ToolDetails } from "./tool_details.js";

const STEP = 50;
const EVERY = "";
const ALL = { kind: null, server: EVERY, text: "" };
/** Without an order, tools are by origin and name. @type {import("../components/data_table.js").Column[]} */
const COLUMNS = [
  { key: "tool", label: "Tool", value: ({ name }) => name, title: ({ title }) => title, cell: (_, opener) => opener },
  { key: "origin", label: "Source", value: origin, cell: (tool) => html`<${Origin} of=${tool} />` },
  { key: "hints", label: "Effects", value: hintOf },
  {
    key: "about",
    wide: true,
    label: "Description",
    cell: ({ problem, description }) => (problem ? `Cannot be called now: ${problem}` : description),
  },
];

export class Catalogue {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.filters = ALL;
    /** The ids of the tools that are being read or tried. @type {string[]} */
    this.opened = [];
    this.search = searchField("Filter tools", "Filter tools by name, description or server", {
      input: () => this.filter({ text: this.search.value.trim().toLowerCase() }),
    });
    this.element = h("div", { class: "wb-stack" });
  }

  /** @returns {any[]} */
  get tools() {
    return [...this.desk.store.tables.catalogue.values()].filter(({ name }) => name).sort(byOrigin);
  }

  summary() {
    if (!this.desk.store.loaded.has("catalogue")) return "";
    const own = this.count();
    return `${plural(own, "tool")} · ${plural(this.tools.length - own, "operation")} of Workbench`;
  }

  /** How many tools there are besides the operations of Workbench. */
  count() {
    return this.tools.filter(({ kind }) => kind !== "operation").length;
  }

  /** @param {boolean} enabled whether requests can be sent */
  update(enabled) {
    this.enabled = enabled;
    const { tools } = this;
    if (!tools.some(({ server }) => (server ?? EVERY) === this.filters.server)) this.filters.server = EVERY; // it is gone
    const { filters } = this;
    const { tables, loaded } = this.desk.store;
    const matching = tools.filter((tool) => matches(tool, filters));
    const visible = tools.filter((tool) => matching.includes(tool) || this.opened.includes(tool.id));
    const view = html`<div class="wb-line">${this.chips(tools)} ${this.servers(tools)}</div>
      <div>${tables.catalogue.get("")?.error.message}</div>
      ${!matching.length && loaded.has("catalogue") && this.empty(tools.length)}
      ${visible.length > 0 && this.table(visible)}`;
    render(view, this.element);
  }

  chips(tools) {
    const count = (kind) => tools.filter((tool) => tool.kind === kind).length;
    const kinds = Object.entries(KINDS).map(([key, label]) => ({ key, label, count: count(key) }));
    const chips = [{ key: null, label: "All", count: tools.length }, ...kinds];
    const choose = (kind) => this.filter({ kind });
    return html`<${Chips} name="Filter tools by kind" chips=${chips} chosen=${this.filters.kind} onChoose=${choose} />`;
  }

  servers(tools) {
    const names = [...new Set(tools.map(({ server }) => server).filter(Boolean))];
    if (!names.length) return null;
    const options = [[EVERY, "All servers"], ...names.map((name) => [name, name])];
    const about = { name: "Filter tools by server", options, value: this.filters.server };
    return html`<${Choice} ...${about} onChoose=${(server) => this.filter({ server })} />`;
  }

  empty(total) {
    if (!total) return html`<p class="wb-empty">There are no tools yet.</p>`;
    const all = html`<${Button} class="wb-link" label="Show all" onClick=${() => this.clear()} />`;
    return html`<p class="wb-empty">No tool matches the filters. ${all}</p>`;
  }

  table(rows) {
    const { desk, enabled, filters, opened } = this;
    const about = {
      class: "wb-tools wb-by-need",
      rows,
      columns: COLUMNS,
      step: STEP,
      filters,
      opened,
      name: ({ name }) => name,
    };
    return html`<${DataTable}
      ...${about}
      rowClass=${({ problem }) => (problem ? "wb-unavailable" : "")}
      detail=${(tool) => html`<${Details} ...${{ tool, desk, enabled }} />`}
      onOpen=${(id) => this.toggle(id)}
      onGone=${() => this.search.focus()}
      onSort=${() => this.filter({})}
    />`;
  }

  toggle(id) {
    this.opened = this.opened.includes(id) ? this.opened.filter((other) => other !== id) : [...this.opened, id];
    this.update(this.enabled);
  }

  filter(change) {
    this.filters = { ...this.filters, ...change };
    this.update(this.enabled);
    const count = this.tools.filter((tool) => matches(tool, this.filters)).length;
    this.desk.announce(`${plural(Math.min(count, STEP), "tool")} shown.`);
  }

  clear() {
    this.search.value = "";
    this.filter(ALL);
    this.search.focus();
  }
}

function Details({ tool, desk, enabled }) {
  const details = useOnce(() => new ToolDetails(tool, desk));
  useLayoutEffect(() => details.update(tool, enabled));
  useLayoutEffect(() => () => details.stop(), []);
  return html`<${Embedded} element=${details.element} />`;
}

function matches({ name, title, description, kind, server }, { kind: wantedKind, server: at, text }) {
  if (wantedKind !== null && kind !== wantedKind) return false;
  if (at !== EVERY && server !== at) return false;
  const about = [name, title, description, server].join("\n").toLowerCase();
  return text.split(/\s+/).every((word) => about.includes(word));
}

/** What a tool says about what it changes. */
function hintOf({ read_only: reads, destructive }) {
  if (reads) return "reads";
  return destructive ? "may delete" : "changes";
}

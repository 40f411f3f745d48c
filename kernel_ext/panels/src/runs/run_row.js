/** The line of a run in the table, and its details below it. */

import { button, checkbox } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { dateTime } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { RunDetails } from "./details.js";
import { parametersText, RUN_STATES, runIcon, took, valueText } from "./state.js";

const FIXED = ["name", "state", "parameters"];
const LAST = ["started", "duration", "tags"];

export class RunRow {
  /** @param {any} desk @param {any} run @param {{select: () => void, change: (run: any) => void}} on */
  constructor(desk, run, on) {
    this.desk = desk;
    this.id = run.id;
    this.on = on;
    this.check = checkbox(`Select run ${run.id}`, on.select, false);
    this.opener = button("", "wb-opener", () => this.toggle());
    this.opener.setAttribute("aria-expanded", "false");
    this.mark = h("span", { class: "wb-state" });
    const keys = [...FIXED, ...LAST];
    this.cells = Object.fromEntries(keys.map((key) => [key, h("td", { class: `wb-col-${key}` })]));
    this.cells.name.append(this.opener);
    this.cells.state.append(this.mark);
    this.line = h("tr", { class: "wb-table-row" });
    this.place = h("td", {});
    this.below = h("tr", { class: "wb-table-details", hidden: true }, this.place);
    this.below.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.toggle(false);
    });
    this.elements = [this.line, this.below];
    this.showColumns([]);
  }

  get isOpen() {
    return !this.below.hidden;
  }

  /** @param {string[]} metrics the columns of metrics */
  showColumns(metrics) {
    const key = JSON.stringify(metrics);
    if (key === this.columns) return;
    this.columns = key;
    this.metrics = metrics.map((name) => [name, h("td", { class: "wb-col-metric" })]);
    const pick = h("td", { class: "wb-col-pick" }, this.check.element);
    const of = (keys) => keys.map((name) => this.cells[name]);
    this.line.replaceChildren(pick, ...of(FIXED), ...this.metrics.map(([, cell]) => cell), ...of(LAST));
    this.place.colSpan = this.line.children.length;
  }

  /** @param {any} run @param {string[]} metrics @param {number} now in ms */
  show(run, metrics, now) {
    this.showColumns(metrics);
    setText(this.cells.duration, took(run, now));
    for (const [name, cell] of this.metrics) setText(cell, name in run.metrics ? valueText(run.metrics[name]) : "");
    if (run === this.run) return;
    this.run = run;
    setText(this.opener, `${run.id} ${run.name}`);
    this.opener.title = [run.name, run.notebook].filter(Boolean).join("\n");
    this.mark.replaceChildren(icon(runIcon(run.state)), h("span", {}, RUN_STATES[run.state] ?? run.state));
    setText(this.cells.parameters, parametersText(run.parameters));
    this.cells.parameters.title = this.cells.parameters.textContent;
    setText(this.cells.started, dateTime(run.started_at));
    setText(this.cells.tags, run.tags.join(", "));
    this.cells.tags.title = this.cells.tags.textContent;
  }

  toggle(open = !this.isOpen) {
    this.below.hidden = !open;
    this.line.classList.toggle("wb-opened", open);
    this.opener.setAttribute("aria-expanded", String(open));
    if (!open) {
      this.stop();
      this.opener.focus();
    } else if (!this.details) {
      this.details = new RunDetails(this.desk, this.id, this.on.change);
      this.place.replaceChildren(this.details.element);
    }
  }

  /** Read the details again if events were about the run, and it is open. */
  refreshIfStale() {
    if (this.isStale) this.details?.refresh.now();
    this.isStale = false;
  }

  stop() {
    this.details?.stop();
    this.details = null;
    this.place.replaceChildren();
  }
}

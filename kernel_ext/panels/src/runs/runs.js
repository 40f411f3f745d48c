/** The Runs tab: runs of experiments, filtered and sorted, each to be opened; several compared; and sweeps. */

import { button, moveBetweenRows } from "../lib/controls.js";
import { freshId, h, prose, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { KeyedList } from "../lib/keyed_list.js";
import { Segments } from "../lib/segments.js";
import { Sorting } from "../lib/sorting.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { SavedViews } from "../saved_views/saved_views.js";
import { Comparison } from "./comparison.js";
import { RunFilters } from "./filters.js";
import { RunRow } from "./run_row.js";
import { commonMetrics } from "./state.js";
import { Sweeps } from "./sweeps.js";

const MODES = { runs: "Runs", sweeps: "Sweeps" };
const PAGE = 50;
const MOST_COMPARED = 20;
const METRICS = 3;
const METRIC = "metric:";
/** The least time between two readings: a sweep may end many runs a second. */
const PAUSE_MS = 500;
/** The columns around those of metrics. */
const BEFORE = { name: "Run", state: "State", parameters: "Parameters" };
const AFTER = { started: "Started", duration: "Took", tags: "Tags" };
/** Those that sort all runs. */
const SORTED = ["name", "state", "started", "duration"];

/** What a list is sorted by for a metric, whatever it is called. @param {string} name */
function metricKey(name) {
  return METRIC + name;
}

export class Runs {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   */
  constructor(store, channel, announce, signal) {
    this.desk = { store, channel, announce };
    this.mode = "runs";
    this.shown = PAGE;
    this.runs = new Map();
    this.sweepsFound = [];
    this.metrics = [];
    this.isStale = true;
    this.requests = new RequestRunner(this.desk);
    this.reading = new Refresh(
      () => this.read(),
      (error) => this.requests.showError(error),
    );
    this.filters = new RunFilters(() => this.restart());
    this.views = new SavedViews(this.desk, "runs", {
      read: () => ({ ...this.filters.chosen, sort: this.sorting.state() }),
      apply: (state) => this.apply(state),
    });
    this.sweeps = new Sweeps((name) => this.openSweep(name), announce);
    this.comparison = new Comparison(this.desk, signal, {
      close: () => this.closeComparison(),
      open: (id) => this.open(id),
    });
    this.modes = new Segments(MODES, "Show", (mode) => this.setMode(mode));
    this.element = this.section();
    store.subscribe(() => this.onChange(), signal);
    signal.addEventListener("abort", () => this.stop(), { once: true });
  }

  section() {
    const id = freshId("runs");
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.empty = h("p", { class: "wb-empty", hidden: true });
    this.more = button("Show more", "wb-button", () => this.showMore());
    this.compare = button("Compare", "wb-button", () => this.compareSelected());
    const unknown = [this.more, this.compare, this.filters.element, this.views.element];
    for (const one of unknown) one.hidden = true; // until there are runs
    this.list = h(
      "div",
      { class: "wb-stack" },
      this.filters.element,
      this.comparison.element,
      this.empty,
      this.table(),
      this.more,
    );
    const heading = h("h3", { class: "wb-heading", id }, "Runs");
    const toolbar = h(
      "div",
      { class: "wb-toolbar" },
      heading,
      this.summary,
      this.compare,
      this.modes.element,
      this.filters.search,
      this.views.element,
    );
    const parts = [toolbar, this.requests.errorBox, this.list, this.sweeps.element];
    return h("section", { class: "wb-section wb-stack", "aria-labelledby": id }, ...parts);
  }

  table() {
    this.head = h("tr", {});
    this.body = h("tbody", {});
    const on = { keydown: (event) => moveBetweenRows(event, this.body) };
    this.grid = h("table", { class: "wb-table wb-runs", on, hidden: true }, h("thead", {}, this.head), this.body);
    this.rows = new KeyedList(this.body, (id) => this.row(id), {
      keep: (_, row) => row.isOpen, // it no longer matches the filters, but it is being read
      onRemove: (row) => row.stop(),
    });
    this.drawHead([]);
    return this.grid;
  }

  row(id) {
    const change = (run) => {
      if (this.runs.has(id)) this.runs.set(id, { ...this.runs.get(id), ...run });
      this.draw();
      this.refresh();
    };
    return new RunRow(this.desk, this.runs.get(id), { select: () => this.drawSelected(), change });
  }

  /** The headings. Those of metrics sort all runs by their last value. */
  drawHead(metrics) {
    const key = JSON.stringify(metrics);
    if (key === this.drawnHead) return;
    this.drawnHead = key;
    const before = this.sorting?.state();
    const labels = { ...BEFORE, ...AFTER };
    const columns = [...SORTED.map((name) => [name, labels[name]]), ...metrics.map((name) => [metricKey(name), name])];
    this.sorting = new Sorting(Object.fromEntries(columns), () => this.restart());
    const heading = (name, text) => {
      const attributes = { scope: "col", class: `wb-col-${name}` };
      return SORTED.includes(name) ? this.sorting.heading(name, "th", attributes) : h("th", attributes, text);
    };
    const around = (group) => Object.entries(group).map(([name, text]) => heading(name, text));
    const measured = metrics.map((name) =>
      this.sorting.heading(metricKey(name), "th", { scope: "col", class: "wb-col-metric", title: name }),
    );
    const pick = h("th", { class: "wb-col-pick" }, h("span", { class: "wb-sr" }, "Select"));
    this.head.replaceChildren(pick, ...around(BEFORE), ...measured, ...around(AFTER));
    this.sorting.set(before);
  }

  get isShown() {
    return this.element.checkVisibility();
  }

  /** Events may be about runs: read them again, while they are shown. */
  onChange() {
    const { store } = this.desk;
    if (!store.concernsAny("run", "sweep")) return;
    this.isStale = true;
    for (const [id, row] of this.rows.items) if (store.concerns(`run:${id}`)) row.isStale = true;
    if (this.isShown) this.refresh();
  }

  refresh() {
    this.isStale = false;
    this.reading.now();
    for (const row of this.rows.items.values()) row.refreshIfStale();
  }

  restart() {
    this.shown = PAGE;
    this.refresh();
  }

  stop() {
    this.reading.stop();
    for (const row of this.rows.items.values()) row.stop();
  }

  async read() {
    const { by, direction } = this.sorting;
    const sort = by === null ? "newest" : `${direction === "descending" ? "-" : ""}${by}`;
    const found = await this.pages({ ...this.filters.chosen, sort });
    const { sweeps } = await this.requests.send("list_sweeps", { limit: 100 });
    this.requests.clearError();
    this.runs = new Map(found.runs.map((run) => [run.id, run]));
    this.hasMore = found.next_cursor !== null;
    this.sweepsFound = sweeps;
    this.filters.setSweeps(sweeps);
    if (!by) this.metrics = commonMetrics(found.runs, METRICS);
    this.isRead = true;
    this.draw();
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }

  /** As many runs as are shown. */
  async pages(args) {
    const limit = Math.min(500, this.shown);
    let page = await this.requests.send("list_runs", { ...args, limit });
    const { runs } = page;
    while (page.next_cursor !== null && runs.length < this.shown) {
      page = await this.requests.send("list_runs", { ...args, limit, cursor: page.next_cursor });
      runs.push(...page.runs);
    }
    return { runs, next_cursor: page.next_cursor };
  }

  showMore() {
    this.shown += PAGE;
    this.refresh();
  }

  setMode(mode) {
    this.mode = mode;
    this.draw();
  }

  /** Filter and sort as a saved view says. @param {any} state */
  apply({ sort, ...filters }) {
    this.filters.choose(filters);
    const by = sort && (SORTED.includes(sort.by) || sort.by.startsWith(METRIC) ? sort.by : metricKey(sort.by));
    const metric = by?.startsWith(METRIC) ? by.slice(METRIC.length) : null;
    if (metric !== null && !this.metrics.includes(metric)) this.metrics = [metric, ...this.metrics].slice(0, METRICS);
    this.drawHead(this.metrics);
    this.sorting.set(by ? { ...sort, by } : null);
    this.restart();
  }

  openSweep(name) {
    this.mode = "runs";
    this.filters.choose({ sweep: name });
    this.restart();
    this.draw();
    this.filters.sweep.focus();
  }

  /** Bring it up to date. @param {boolean} [enabled] @param {number} [now] in ms */
  update(enabled = this.enabled, now = Date.now()) {
    this.enabled = enabled;
    this.now = now;
    if (this.isStale) this.refresh();
    this.draw();
  }

  draw() {
    const isRuns = this.mode === "runs";
    this.modes.show(this.mode);
    this.list.hidden = this.filters.search.hidden = !isRuns;
    this.sweeps.element.hidden = isRuns;
    if (!this.isRead) return;
    if (isRuns) this.drawRuns();
    else this.drawSweeps();
    this.views.element.hidden = !isRuns || this.filters.element.hidden;
    this.views.update();
    const sweeps = this.sweepsFound.length;
    this.modes.setLabel("sweeps", sweeps ? `Sweeps ${sweeps.toLocaleString("en")}` : "Sweeps");
    this.drawSelected();
  }

  drawRuns() {
    const { runs, metrics } = this;
    const { isActive } = this.filters;
    this.drawHead(metrics);
    this.rows.show([...runs.keys()], (row, id) => row.show(runs.get(id), metrics, this.now ?? Date.now()));
    this.grid.hidden = this.rows.items.size === 0;
    this.more.hidden = !this.hasMore;
    this.filters.element.hidden = !isActive && runs.size === 0 && this.sweepsFound.length === 0;
    this.empty.hidden = runs.size > 0;
    const none = "No runs yet. Record one with `with wb.run(name, lr=0.1) as run: run.record(loss=0.5)`.";
    const why = isActive ? "No run matches the filters." : none;
    if (why !== this.drawnEmpty) this.empty.replaceChildren(...prose((this.drawnEmpty = why)));
    this.grid.classList.toggle("wb-no-tags", ![...runs.values()].some(({ tags }) => tags.length));
    const running = [...runs.values()].filter(({ state }) => state === "running").length;
    const known = plural(runs.size, "run");
    const text = `${this.hasMore ? `The first ${known}` : known}${running ? ` · ${running} running` : ""}`;
    setText(this.summary, runs.size ? text : "");
  }

  drawSweeps() {
    this.sweeps.update(this.sweepsFound);
    setText(this.summary, "");
  }

  get selected() {
    return [...this.rows.items.values()].filter((row) => row.check.box.checked).map(({ id }) => id);
  }

  drawSelected() {
    const count = this.mode === "runs" ? this.selected.length : 0;
    this.compare.hidden = count < 2;
    const tooMany = count > MOST_COMPARED;
    if (!this.comparison.requests.busy)
      setText(this.compare, tooMany ? `Compare (at most ${MOST_COMPARED})` : `Compare ${count}`);
    this.compare.setAttribute("aria-disabled", String(tooMany));
  }

  compareSelected() {
    this.comparison.show(this.selected, this.compare);
  }

  closeComparison() {
    this.comparison.hide();
    (this.compare.hidden ? this.filters.search : this.compare).focus();
  }

  /** Open a run's details. @param {number} id */
  open(id) {
    const row = this.rows.items.get(id);
    if (!row) return;
    row.toggle(true);
    row.opener.focus();
    row.line.scrollIntoView({ block: "nearest" });
  }
}

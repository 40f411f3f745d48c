/** The Runs tab: runs of experiments, filtered and sorted, each to be opened; several compared; and sweeps. */

import { DataTable } from "../components/data_table.js";
import { Button, Checkbox, Embedded, Icon, drawnIn, html, useOnce } from "../components/ui.js";
import { Segments, button, copyButton } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { dateTime, plural } from "../lib/format.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { SavedViews } from "../saved_views/saved_views.js";
import { Comparison } from "./comparison.js";
import { RunDetails } from "./details.js";
import { RunFilters } from "./filters.js";
import { bestOf } from "./series.js";
import {
  MOST_COMPARED,
  RUN_STATES,
  commonMetrics,
  parametersText,
  runIcon,
  took,
  valueText,
  varyingParameters,
} from "./state.js";

const MODES = { runs: "Runs", sweeps: "Sweeps" };
const PAGE = 50;
const METRICS = 3;
const PARAMETERS = 3;
/** The least time between two readings: a sweep may end many runs a second. */
const PAUSE_MS = 500;
const SELECT = html`<span class="wb-sr">Select</span>`;
const NONE = html`<p class="wb-empty">
  No runs yet. Record one with <code>with wb.run(name, lr=0.1) as run: run.record(loss=0.5)</code>.
</p>`;

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
    /** What was read, by id. @type {Map<number, any>} */
    this.runs = new Map();
    /** The runs in the table: those, and others whose details are open. @type {any[]} */
    this.rows = [];
    /** The details that are open, by the ids of their runs. @type {Map<number, RunDetails>} */
    this.opened = new Map();
    /** The ids of the runs that are selected. @type {Set<number>} */
    this.picked = new Set();
    /** @type {import("../components/data_table.js").Sort} */
    this.sort = null;
    this.sweepsFound = [];
    this.metrics = [];
    /** The parameters that have columns. @type {string[]} */
    this.parameters = [];
    this.isStale = true;
    this.requests = new RequestRunner(this.desk);
    this.reading = new Refresh(
      () => this.read(),
      (error) => this.requests.showError(error),
    );
    this.filters = new RunFilters(() => this.restart());
    this.views = new SavedViews(this.desk, "runs", {
      read: () => ({ ...this.filters.chosen, sort: this.sort }),
      apply: (state) => this.apply(state),
    });
    this.sweeps = h("div", { class: "wb-stack" });
    this.comparison = new Comparison(this.desk, signal, {
      close: () => this.closeComparison(),
      open: (id) => this.open(id),
    });
    this.modes = new Segments(MODES, "Show", (mode) => this.setMode(mode));
    this.element = this.section();
    this.drawList = drawnIn(this.list, signal);
    this.drawInSweeps = drawnIn(this.sweeps, signal);
    store.subscribe(() => this.onChange(), signal);
    signal.addEventListener("abort", () => this.stop(), { once: true });
  }

  section() {
    const id = freshId("runs");
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.compare = button("Compare", "wb-button", () => this.compareSelected());
    const unknown = [this.compare, this.filters.element, this.views.element];
    for (const element of unknown) element.hidden = true; // until there are runs
    this.list = h("div", { class: "wb-stack" });
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
    const parts = [toolbar, this.requests.errorBox, this.list, this.sweeps];
    return h("section", { class: "wb-section wb-stack", "aria-labelledby": id }, ...parts);
  }

  get isShown() {
    return this.element.checkVisibility();
  }

  /** Events may be about runs: read them again, while they are shown. */
  onChange() {
    const { store } = this.desk;
    if (!store.concernsAny("run", "sweep")) return;
    this.isStale = true;
    for (const [id, details] of this.opened) if (store.concerns(`run:${id}`)) details.isStale = true;
    if (this.isShown) this.refresh();
  }

  refresh() {
    this.isStale = false;
    this.reading.now();
    for (const details of this.opened.values()) details.refreshIfStale();
  }

  restart(shown = PAGE) {
    this.shown = shown;
    this.draw();
    this.refresh();
  }

  stop() {
    this.reading.stop();
    for (const details of this.opened.values()) details.stop();
  }

  async read() {
    const sort = this.sort ? `${this.sort.direction === "descending" ? "-" : ""}${this.sort.by}` : "newest";
    const page = await this.pages({ ...this.filters.chosen, sort });
    const { sweeps } = await this.requests.send("list_sweeps", { limit: 100 });
    this.requests.clearError();
    this.runs = new Map(page.runs.map((run) => [run.id, run]));
    this.hasMore = page.next_cursor !== null;
    this.sweepsFound = sweeps;
    this.filters.setSweeps(sweeps);
    if (!this.sort) this.metrics = commonMetrics(page.runs, METRICS);
    const sorted = this.sort?.by.startsWith(PARAMETER) ? [this.sort.by.slice(PARAMETER.length)] : [];
    this.parameters = [...new Set([...sorted, ...varyingParameters(page.runs, PARAMETERS)])].slice(0, PARAMETERS);
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

  setMode(mode) {
    this.mode = mode;
    this.draw();
  }

  /** Filter and sort as a saved view says. @param {any} state */
  apply({ sort, ...filters }) {
    this.filters.choose(filters);
    const isKey = (text) =>
      metricOf(text) !== null || text.startsWith(PARAMETER) || columnsOf(NO_NAMES, 0).some(({ key }) => key === text);
    const by = sort && (isKey(sort.by) ? sort.by : metricKey(sort.by));
    const metric = by ? metricOf(by) : null;
    if (metric !== null && !this.metrics.includes(metric)) this.metrics = [metric, ...this.metrics].slice(0, METRICS);
    this.sort = by ? { ...sort, by } : null;
    this.restart();
  }

  openSweep(name) {
    this.mode = "runs";
    this.filters.choose({ sweep: name });
    this.restart();
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
    this.sweeps.hidden = isRuns;
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
    const { runs } = this;
    const { isActive } = this.filters;
    this.filters.element.hidden = !isActive && runs.size === 0 && this.sweepsFound.length === 0;
    this.rows = withKept([...runs.values()], this.rows, this.opened);
    const shown = this.rows.map(({ id }) => id);
    this.picked = new Set(shown.filter((id) => this.picked.has(id)));
    const more = html`<${Button} label="Show more" onClick=${() => this.restart(this.shown + PAGE)} />`;
    this.drawList(
      html`<${Embedded} element=${this.filters.element} />
        <${Embedded} element=${this.comparison.element} />
        ${!runs.size && (isActive ? html`<p class="wb-empty">No run matches the filters.</p>` : NONE)} ${this.table()}
        ${this.hasMore && more}`,
    );
    const running = [...runs.values()].filter(({ state }) => state === "running").length;
    const count = plural(runs.size, "run");
    const text = `${this.hasMore ? `The first ${count}` : count}${running ? ` · ${running} running` : ""}`;
    setText(this.summary, runs.size ? text : "");
  }

  table() {
    const { rows, sort } = this;
    const pick = (id) => (on) => {
      this.picked[on ? "add" : "delete"](id);
      this.draw();
    };
    const box = ({ id }) =>
      html`<${Checkbox} name="Select run ${id}" checked=${this.picked.has(id)} onChange=${pick(id)} />`;
    const { bestBy } = this;
    const best = bestBy && { ...bestBy, id: bestOf([...this.runs.values()], bestBy.metric, bestBy.which) };
    const names = { metrics: this.metrics, parameters: this.parameters };
    const shown = columnsOf(names, this.now ?? Date.now(), best);
    const columns = [{ key: "pick", label: SELECT, cell: box }, ...shown];
    const resort = (chosen) => {
      this.sort = chosen;
      this.restart();
    };
    return html`<${DataTable}
      ...${{ rows, columns, sort, opener: "name", opened: [...this.opened.keys()] }}
      class="wb-runs wb-by-need"
      hidden=${!rows.length}
      name=${({ id, name }) => `${id} ${name}`}
      detail=${({ id }) => html`<${Embedded} element=${this.opened.get(id).element} />`}
      onSort=${resort}
      onOpen=${(id) => this.toggle(id)}
      onGone=${() => this.filters.search.focus()}
    />`;
  }

  toggle(id) {
    if (this.opened.has(id)) {
      this.opened.get(id).stop();
      this.opened.delete(id);
    } else this.opened.set(id, new RunDetails(this.desk, id, this.waysOn()));
    this.draw();
  }

  waysOn() {
    return {
      change: (run) => this.take(run),
      open: (id) => this.open(id),
      compare: (ids, from) => this.comparison.show(ids, from, this.bestBy),
    };
  }

  /** By which metric a run is the best: the one that they are sorted by; null: they are sorted by something else. */
  get bestBy() {
    const metric = this.sort && metricOf(this.sort.by);
    return metric === null ? null : { metric, which: this.sort.direction === "ascending" ? "lowest" : "highest" };
  }

  /** A run was changed here. */
  take(run) {
    if (this.runs.has(run.id)) this.runs.set(run.id, { ...this.runs.get(run.id), ...run });
    this.draw();
    this.refresh();
  }

  drawSweeps() {
    const about = { sweeps: this.sweepsFound, announce: this.desk.announce };
    this.drawInSweeps(html`<${Sweeps} ...${about} onOpen=${(name) => this.openSweep(name)} />`);
    setText(this.summary, "");
  }

  drawSelected() {
    const count = this.mode === "runs" ? this.picked.size : 0;
    this.compare.hidden = count < 2;
    const tooMany = count > MOST_COMPARED;
    if (!this.comparison.requests.busy)
      setText(this.compare, tooMany ? `Compare (at most ${MOST_COMPARED})` : `Compare ${count}`);
    this.compare.setAttribute("aria-disabled", String(tooMany));
  }

  compareSelected() {
    this.comparison.show([...this.picked], this.compare, this.bestBy);
  }

  closeComparison() {
    this.comparison.hide();
    (this.compare.hidden ? this.filters.search : this.compare).focus();
  }

  /** Open a run's details, also of one that is not in the list. @param {number} id */
  async open(id) {
    if (!this.rows.some((row) => row.id === id)) {
      const run = await this.requests.run("get_run", { run_id: id });
      if (!run) return;
      this.rows = [...this.rows, run];
    }
    if (!this.opened.has(id)) this.toggle(id);
    const opener = this.list.querySelector(`[data-row="${id}"]`);
    opener.focus();
    opener.closest("tr").scrollIntoView({ block: "nearest" });
  }
}

/** The runs, and those that are open although they are not among them, each behind the one that it stands behind now. */
function withKept(runs, before, opened) {
  const order = runs.map(({ id }) => id);
  const byId = new Map([...before, ...runs].map((run) => [run.id, run]));
  let previous = -1;
  for (const { id } of before) {
    if (order.includes(id)) previous = order.indexOf(id);
    else if (opened.has(id)) order.splice((previous += 1), 0, id);
  }
  return order.map((id) => byId.get(id));
}

const BEST = html`<span title="The best of these runs" role="img" aria-label="Best">★ </span>`;
const METRIC = "metric:";
const PARAMETER = "parameter:";
const NO_NAMES = { metrics: [], parameters: [] };

/** What runs are sorted by for a metric, whatever it is called. @param {string} name */
function metricKey(name) {
  return METRIC + name;
}

/** The metric that runs are sorted by; null: by none. @param {string} key */
function metricOf(key) {
  return key.startsWith(METRIC) ? key.slice(METRIC.length) : null;
}

/**
 * @param {{metrics: string[], parameters: string[]}} names that have columns @param {number} now in ms @param {{id: number|null, metric: string}|null} best which run is marked
 * @returns {import("../components/data_table.js").Column[]}
 */
function columnsOf({ metrics, parameters: named }, now, best) {
  const metric = (name) => ({
    key: metricKey(name),
    kind: "metric",
    label: html`<span title=${name}>${name}</span>`,
    value: (run) => (name in run.metrics ? valueText(run.metrics[name]) : ""),
    cell: (run) => [best && best.metric === name && best.id === run.id && BEST, valueText(run.metrics[name])],
  });
  const parameter = (name) => ({
    key: PARAMETER + name,
    kind: "parameter",
    label: html`<span title=${name}>${name}</span>`,
    value: ({ parameters: values }) => valueText(values[name]),
  });
  const isRest = ([name]) => !named.includes(name);
  const parameters = ({ parameters: values }) =>
    parametersText(Object.fromEntries(Object.entries(values).filter(isRest)));
  const tags = (run) => run.tags.join(", ");
  return [
    { key: "name", label: "Run", value: ({ id }) => id, cell: (_, opener) => opener, title: originOf },
    { key: "state", label: "State", value: ({ state }) => state, cell: stateMark },
    ...named.map(parameter),
    { key: "parameters", label: "Parameters", wide: true, optional: parameters, cell: parameters, title: parameters },
    ...metrics.map(metric),
    { key: "started", label: "Started", value: ({ started_at: at }) => dateTime(at) },
    { key: "duration", label: "Took", value: (run) => took(run, now) },
    { key: "tags", label: "Tags", optional: tags, cell: tags, title: tags },
  ];
}

function originOf({ name, notebook }) {
  return [name, notebook].filter(Boolean).join("\n");
}

function stateMark({ state }) {
  return html`<span class="wb-state"
    ><${Icon} name=${runIcon(state)} /><span>${RUN_STATES[state] ?? state}</span></span
  >`;
}

const PARTS = ["completed", "running", "failed"];
const STATES = { running: "in_progress" };
const NO_SWEEPS = html`<p class="wb-empty">
  No sweeps yet. <code>%workbench sweep</code> runs a notebook with many parameters.
</p>`;

/** @param {{sweeps: any[], onOpen: (name: string) => void, announce: (text: string) => void}} props the newest first */
function Sweeps({ sweeps, onOpen, announce }) {
  const line = (sweep) => html`<${Sweep} key=${sweep.id} ...${{ sweep, onOpen, announce }} />`;
  return html`${!sweeps.length && NO_SWEEPS}
    <ul class="wb-sweeps" aria-label="Sweeps">
      ${sweeps.map(line)}
    </ul>`;
}

function Sweep({ sweep, onOpen, announce }) {
  const { name, notebook, created_at: at, specification, failed, running } = sweep;
  const total = Number(specification.runs) || PARTS.reduce((sum, part) => sum + sweep[part], 0);
  const ended = PARTS.filter((part) => sweep[part]).map((part) => `${sweep[part].toLocaleString("en")} ${part}`);
  const width = (part) => `${total ? (100 * sweep[part]) / total : 0}%`;
  const meter = (part) =>
    html`<span class="wb-meter-part" data-state=${STATES[part] ?? part} style=${{ width: width(part) }} />`;
  return html`<li class="wb-sweep">
    <div class="wb-line">
      <${Button} class="wb-link wb-cut" label=${name} onClick=${() => onOpen(name)} />
      <span class="wb-muted wb-cut wb-grow">${notebook} · ${dateTime(at)}</span>
      <span class="wb-cut">${[plural(total, "run"), ...ended].join(", ")}</span>
    </div>
    <div class="wb-meter" aria-hidden="true">${PARTS.map(meter)}</div>
    ${failed > 0 && !running && html`<${Retry} name=${name} announce=${announce} />`}
  </li>`;
}

/** The command that runs again what failed; the name of a sweep has letters, digits, - and _. */
function Retry({ name, announce }) {
  const cell = `%workbench sweep --name ${name} --retry-failed`;
  const about = `Copy the command that runs again what failed of ${name}`;
  const copy = useOnce(() => copyButton(() => cell, about, announce));
  return html`<div class="wb-line">
    <span class="wb-muted">Run again what failed:</span><code>${cell}</code><${Embedded} element=${copy} />
  </div>`;
}

/** Runs beside each other: parallel coordinates of what differs in numbers, and a table of all differences. */

import { coordinates, hue } from "../charts/coordinates.js";
import { Figure } from "../charts/figure.js";
import { plainTable } from "../lib/blocks.js";
import { button, select, setOptions } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { duration, plural } from "../lib/format.js";
import { RequestRunner } from "../link/request_runner.js";
import { Overlay } from "./overlay.js";
import { bestOf } from "./series.js";
import { commonMetrics, valueText } from "./state.js";

const AXES = 8;
/** What a row is about, before its name. */
const SECTIONS = {
  run: "",
  parameters: "parameter",
  metrics: "metric",
  git: "git",
  definitions: "definition",
  environment: "environment",
};
/** The names of what each run has, where they are not words already. */
const FACTS = { parent_id: "within run", seconds: "took", error_code: "error", tries: "times tried" };
const NO_MARK = "";
const DRAWN_SECTIONS = new Set(["parameters", "metrics"]);

export class Comparison {
  /** @param {any} desk @param {AbortSignal} signal @param {{close: () => void, open: (id: number) => void}} on */
  constructor(desk, signal, on) {
    this.on = on;
    this.requests = new RequestRunner(desk);
    this.title = h("h4", { class: "wb-label wb-grow", tabindex: -1 });
    this.figure = new Figure("Parallel coordinates", signal, "wb-figure-wide");
    this.box = h("div", { class: "wb-compared", tabindex: 0, role: "group", "aria-label": "Differences" });
    const attributes = { class: "wb-input wb-narrow", "aria-label": "Best run", on: { change: () => this.mark() } };
    this.bestBy = select([], NO_MARK, attributes);
    this.overlay = new Overlay(desk, signal, on.open);
    const head = h("div", { class: "wb-line" }, this.title, this.bestBy, button("Close", "wb-button", on.close));
    const parts = [head, this.requests.errorBox, this.figure.element, this.overlay.element, this.box];
    this.element = h("section", { class: "wb-box wb-stack", "aria-label": "Comparison", hidden: true }, ...parts);
  }

  /**
   * @param {number[]} ids @param {HTMLElement} from the button that was pressed
   * @param {{metric: string, which: string}|null} bestBy the run that is marked; null: as before
   */
  async show(ids, from, bestBy) {
    const comparison = await this.requests.run("compare_runs", { run_ids: ids }, from, "Comparing…");
    this.element.hidden = false;
    if (!comparison) return;
    this.title.textContent = `${plural(comparison.runs.length, "run")} compared`;
    this.comparison = comparison;
    const { runs, rows } = comparison;
    const isMetric = (name) => runs.some(({ metrics }) => typeof metrics[name] === "number");
    const names = commonMetrics(runs, Infinity).filter(isMetric);
    const marks = names.flatMap((name) => [`lowest ${name}`, `highest ${name}`]).map((text) => [text, `Best: ${text}`]);
    setOptions(
      this.bestBy,
      [["", [[NO_MARK, "No best run"], ...marks]]],
      bestBy ? `${bestBy.which} ${bestBy.metric}` : this.bestBy.value,
    );
    this.bestBy.hidden = !marks.length;
    this.mark();
    this.title.focus();
    const varying = rows.filter(({ section }) => section === "parameters").map(({ name }) => name);
    try {
      await this.overlay.show(runs, varying);
    } catch (error) {
      this.requests.showError(error);
    }
  }

  /** Mark the best run in all that is shown. */
  mark() {
    const [which, ...words] = this.bestBy.value.split(" ");
    this.best = which ? bestOf([...this.comparison.runs], words.join(" "), which) : null;
    this.drawFigure(this.comparison);
    this.drawTable(this.comparison);
    this.overlay.mark(this.best);
  }

  nameOf({ id, name }) {
    return `${id === this.best ? "★ " : ""}${id} ${name}`;
  }

  hide() {
    this.element.hidden = true;
  }

  drawFigure({ runs, rows }) {
    const drawn = rows.filter(
      ({ section, values }) => DRAWN_SECTIONS.has(section) && values.some((value) => value !== null),
    );
    const axes = drawn.slice(0, AXES).map(({ name, values }) => ({ name, values: values.map(plain) }));
    const sentence = this.sentence(rows.length, drawn.length, axes.length);
    if (axes.length < 2) return this.figure.show({ sentence });
    const lines = runs.map(({ id, name }, at) => ({
      key: String(id),
      text: `Run ${id} ${name}: ${axes.map((axis) => `${axis.name} ${valueText(axis.values[at])}`).join(", ")}`,
      best: id === this.best,
      open: () => this.on.open(id),
    }));
    const legend = runs.map((run, at) => [hue(at), this.nameOf(run)]);
    return this.figure.show({ sentence, legend, draw: (width) => coordinates(width, { axes, runs: lines }) });
  }

  sentence(all, drawn, axes) {
    if (!all) return "These runs do not differ.";
    const first = `They differ in ${plural(all, "value")}`;
    if (axes < 2) return `${first}; a picture needs two parameters or metrics that differ.`;
    return axes < drawn ? `${first}; the first ${axes} parameters and metrics are drawn.` : `${first}.`;
  }

  drawTable({ runs, rows }) {
    const lines = rows.map(({ section, name, values }) => {
      const about = SECTIONS[section] ?? section;
      const before = about && h("span", { class: "wb-muted" }, `${about} `);
      const what = h("th", { scope: "row" }, before, section === "run" ? (FACTS[name] ?? name) : name);
      return [what, ...values.map((value) => this.cell(section, name, value))];
    });
    this.box.hidden = !rows.length;
    this.box.replaceChildren(plainTable(["What", ...runs.map((run) => this.nameOf(run))], lines));
  }

  cell(section, name, value) {
    if (section !== "run" || name !== "parent_id" || value === null) return differing(section, name, value);
    return h(
      "td",
      {},
      button(String(value), "wb-link", () => this.on.open(value), `Open run ${value}`),
    );
  }
}

/** The value of one run, in a cell of the table. */
function differing(section, name, value) {
  if (value === null) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return section === "run" && name === "seconds" ? duration(1000 * value) : valueText(value);
}

/** Numbers and null as they are, everything else as text. */
function plain(value) {
  return typeof value === "number" || value === null ? value : valueText(value);
}

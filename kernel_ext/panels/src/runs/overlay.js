/** The series of several runs over each other: a figure for each metric, by run or as means by a parameter. */

import { hue } from "../charts/coordinates.js";
import { Figure } from "../charts/figure.js";
import { curves, isPlaced } from "../charts/lines.js";
import { extent } from "../charts/parts.js";
import { checkbox, select, setOptions } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { requestId } from "../link/channel.js";
import { means, numbers } from "./series.js";
import { commonMetrics, valueText } from "./state.js";

const FIGURES = 12;
const POINTS = 300;
const BY_RUN = "";
const STAR = "★ ";

export class Overlay {
  /** @param {any} desk @param {AbortSignal} signal @param {(id: number) => void} open */
  constructor(desk, signal, open) {
    this.desk = desk;
    this.signal = signal;
    this.open = open;
    this.by = select([], BY_RUN, {
      class: "wb-input wb-narrow",
      "aria-label": "Lines",
      on: { change: () => this.draw() },
    });
    this.log = checkbox("Log axis", () => this.draw());
    this.figures = h("div", { class: "wb-figures" });
    const head = h(
      "div",
      { class: "wb-line" },
      h("span", { class: "wb-label wb-grow" }, "Series"),
      this.by,
      this.log.element,
    );
    this.element = h("div", { class: "wb-stack", hidden: true }, head, this.figures);
  }

  /** @param {any[]} runs @param {string[]} parameters in which they differ */
  async show(runs, parameters) {
    this.runs = runs;
    this.series = [];
    this.element.hidden = true;
    const names = commonMetrics(runs, FIGURES);
    const ask = ({ id }) =>
      this.desk.channel.request(requestId(), "get_run_series", { run_id: id, names, max_points: POINTS });
    const answers = names.length ? await Promise.all(runs.map(ask)) : [];
    if (this.runs !== runs) return;
    const pointsOf = (name) =>
      answers.map(({ series }) => numbers(series.find((each) => each.name === name)?.points ?? []));
    this.series = names
      .map((name) => ({ name, points: pointsOf(name) }))
      .filter(({ points }) => points.some((each) => each.length > 1));
    this.element.hidden = !this.series.length;
    const means = parameters.map((name) => [name, `Mean ± sd by ${name}`]);
    setOptions(this.by, [["", [[BY_RUN, "A line for each run"], ...means]]]);
    this.drawn = new Map();
    this.figures.replaceChildren();
    this.draw();
  }

  /** Which run is the best; null: none is marked. @param {number|null} id */
  mark(id) {
    this.best = id;
    if (this.runs) this.draw();
  }

  draw() {
    const log = this.log.box.checked;
    for (const { name, points } of this.series) {
      if (!this.drawn.has(name)) {
        const figure = new Figure(name, this.signal);
        this.drawn.set(name, figure);
        this.figures.append(figure.element);
      }
      const lines = this.by.value === BY_RUN ? this.byRun(name, points) : this.byParameter(name, points);
      const values = lines.flatMap((line) => line.points);
      const left = values.filter(([, value]) => !isPlaced(value, log)).length;
      const none = left ? ` ${plural(left, "value")} of 0 or less have no place on a log axis.` : "";
      const legend = lines.map(({ hue: colour, label }) => [colour, label]);
      const sentence = `${this.sentence(lines)}${none}`;
      const draw = left < values.length ? (width) => curves(width, { curves: lines, log }) : undefined;
      this.drawn.get(name).show({ sentence, legend, table: tableOf(lines), draw });
    }
  }

  sentence(lines) {
    const by = this.by.value;
    const [low, high] = extent(lines.map(({ points }) => points.at(-1)[1]));
    if (by === BY_RUN) return `${plural(lines.length, "run")}, which end from ${valueText(low)} to ${valueText(high)}.`;
    return `The mean of the runs of each ${by}, and a standard deviation below and above it.`;
  }

  byRun(name, points) {
    const line = ({ id, name: run }, at) => {
      const isBest = id === this.best;
      const last = points[at].at(-1)?.[1];
      return {
        key: String(id),
        label: `${isBest ? STAR : ""}${id} ${run}`,
        text: `Run ${id} ${run}${isBest ? ", the best" : ""}: ${name} is ${valueText(last)} at the end`,
        hue: hue(at),
        points: points[at],
        best: isBest,
        open: () => this.open(id),
      };
    };
    return this.runs.map(line).filter((each) => each.points.length);
  }

  byParameter(name, points) {
    const by = this.by.value;
    /** @type {Map<string, any[]>} */
    const groups = new Map();
    this.runs.forEach(({ parameters }, at) => {
      if (!points[at].length) return;
      const value = by in parameters ? valueText(parameters[by]) : "none";
      groups.set(value, [...(groups.get(value) ?? []), points[at]]);
    });
    return [...groups].map(([value, series], at) => {
      const rows = means(series);
      const [, last, low] = rows.at(-1);
      const label = `${by}=${value}, ${plural(series.length, "run")}`;
      return {
        key: value,
        label,
        text: `${label}: ${name} is ${valueText(last)} ± ${valueText(last - low)} at the end`,
        hue: hue(at),
        points: rows.map(([step, mean]) => [step, mean]),
        band: rows.map(([step, , from, to]) => [step, from, to]),
      };
    });
  }
}

function tableOf(lines) {
  const steps = [...new Set(lines.flatMap(({ points }) => points.map(([step]) => step)))].sort((a, b) => a - b);
  const values = lines.map(({ points }) => new Map(points));
  const rows = steps.map((step) => [step, ...values.map((each) => valueText(each.get(step)))]);
  return { columns: ["Step", ...lines.map(({ label }) => label)], rows };
}

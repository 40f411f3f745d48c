/** A line through the values of a series. */

import { svg } from "../lib/dom.js";
import { shortNumber } from "../lib/format.js";
import { drawing, gridLines, mark, MARGIN, namesBelow } from "./parts.js";
import { extent, linear } from "./scales.js";

const HEIGHT = 120;
/** So many of the points can be pointed at. */
const MARKED = 60;

/** Values as an axis names them: as few digits as tell them apart. @param {number} low @param {number} high */
export function numberFormat(low, high) {
  const small = Math.max(Math.abs(low), Math.abs(high));
  if (small !== 0 && (small < 0.001 || small >= 1e6)) return (value) => value.toExponential(1);
  const digits = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(high - low || small || 1))));
  return (value) => value.toLocaleString("en", { maximumFractionDigits: digits });
}

/**
 * @param {number} width
 * @param {{points: [number, number][], name: string}} data steps and values
 */
export function line(width, { points, name }) {
  const [low, high] = extent(points.map(([, value]) => value)) ?? [0, 1];
  const [first, last] = extent(points.map(([step]) => step)) ?? [0, 1];
  const text = numberFormat(low, high);
  const values = low === high ? [low] : [low, (low + high) / 2, high];
  const left = Math.max(MARGIN.left, 10 + 7 * Math.max(...values.map((value) => text(value).length)));
  const x = linear([first, last], [left, width - MARGIN.right]);
  const y = linear([low, high], [HEIGHT - MARGIN.bottom - 4, MARGIN.top]);
  const finite = points.filter(([, value]) => Number.isFinite(value));
  const path = finite.map(([step, value], at) => `${at ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`);
  const every = Math.ceil(finite.length / MARKED);
  const marked = finite.filter((_, at) => at % every === 0 || at === finite.length - 1);
  const marks = marked.map(([step, value]) => {
    const dot = svg("circle", { cx: x(step), cy: y(value), r: 3, class: "wb-chart-dot" });
    return mark(dot, String(step), `${name} at step ${step.toLocaleString("en")}: ${shortNumber(value)}`);
  });
  const names = [first, last].map((step) => ({ x: x(step), text: `step ${step.toLocaleString("en")}` }));
  const picture = drawing(
    width,
    HEIGHT,
    ...gridLines(width, y, values, text, left),
    svg("path", { d: path.join(""), class: "wb-chart-line" }),
    ...marks.map(({ element }) => element),
    ...namesBelow(HEIGHT - 4, first === last ? names.slice(1) : names),
  );
  return { picture, marks };
}

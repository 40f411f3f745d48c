/** Lines through the values of series: of one, or of several over each other. */

import { svg } from "../lib/dom.js";
import { shortNumber } from "../lib/format.js";
import { MARGIN, drawing, extent, gridLines, linear, mark, namesBelow } from "./parts.js";

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

/** The places of values, those that its axis names, and how it names them. @param {[number, number]} ends @param {boolean} log */
function valueAxis([low, high], log) {
  const range = [HEIGHT - MARGIN.bottom - 4, MARGIN.top];
  const middle = log ? Math.sqrt(low * high) : (low + high) / 2;
  const values = low === high ? [low] : [low, middle, high];
  if (!log) return { y: linear([low, high], range), values, text: numberFormat(low, high) };
  const place = linear([Math.log10(low), Math.log10(high)], range);
  return { y: (value) => place(Math.log10(value)), values, text: (value) => String(Number(value.toPrecision(2))) };
}

/** Whether a value has a place on an axis. @param {unknown} value @param {boolean} log */
export function isPlaced(value, log) {
  return Number.isFinite(value) && (!log || Number(value) > 0);
}

/**
 * The axes of steps and values, for all of these points.
 * @param {number} width @param {[number, number][]} points that have places @param {boolean} log
 */
function axes(width, points, log) {
  const [first, last] = extent(points.map(([step]) => step)) ?? [0, 1];
  const { y, values, text } = valueAxis(extent(points.map(([, value]) => value)) ?? [1, 1], log);
  const left = Math.max(MARGIN.left, 10 + 7 * Math.max(...values.map((value) => text(value).length)));
  const x = linear([first, last], [left, width - MARGIN.right]);
  const names = [first, last].map((step) => ({ x: x(step), text: `step ${step.toLocaleString("en")}` }));
  const below = namesBelow(HEIGHT - 4, first === last ? names.slice(1) : names);
  const path = (some) =>
    some.map(([step, value], at) => `${at ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  return { x, y, path, lines: gridLines(width, y, values, text, left), below };
}

/**
 * @param {number} width
 * @param {{points: [number, number][], name: string, log?: boolean}} data steps and values
 */
export function line(width, { points, name, log = false }) {
  const placed = points.filter(([, value]) => isPlaced(value, log));
  const { x, y, path, lines, below } = axes(width, placed, log);
  const every = Math.ceil(placed.length / MARKED);
  const marked = placed.filter((_, at) => at % every === 0 || at === placed.length - 1);
  const marks = marked.map(([step, value]) => {
    const dot = svg("circle", { cx: x(step), cy: y(value), r: 3, class: "wb-chart-dot" });
    return mark(dot, String(step), `${name} at step ${step.toLocaleString("en")}: ${shortNumber(value)}`);
  });
  const drawn = svg("path", { d: path(placed), class: "wb-chart-line" });
  return { picture: drawing(width, HEIGHT, ...lines, drawn, ...marks.map(({ element }) => element), ...below), marks };
}

/**
 * Several series over each other. `band` has the lowest and the highest value at each step around a curve.
 * @typedef {{key: string, text: string, hue: string, points: [number, number][], band?: [number, number, number][],
 *   best?: boolean, open?: () => void}} Curve
 * @param {number} width
 * @param {{curves: Curve[], log?: boolean}} data
 */
export function curves(width, { curves: given, log = false }) {
  const place = (points) => points.filter(([, value]) => isPlaced(value, log));
  const edges = ({ band = [] }) => [
    place(band.map(([step, low]) => [step, low])),
    place(band.map(([step, , high]) => [step, high])),
  ];
  const all = given.flatMap((curve) => [...place(curve.points), ...edges(curve).flat()]);
  const { path, lines, below } = axes(width, all, log);
  const bands = given.map((curve) => {
    const [low, high] = edges(curve);
    const around = low.length && `${path(low)}${path(high.reverse()).replace("M", "L")}Z`;
    return around && svg("path", { d: around, class: "wb-chart-band", "data-state": curve.hue });
  });
  const marks = given.map(({ key, text, hue, points, best, open }) => {
    const d = path(place(points));
    const drawn = svg("path", { d, class: `wb-chart-run ${best ? "wb-best" : ""}`, "data-state": hue });
    return mark(svg("g", {}, svg("path", { d, class: "wb-chart-reach" }), drawn), key, text, open);
  });
  const parts = [...bands.filter(Boolean), ...marks.map(({ element }) => element)];
  return { picture: drawing(width, HEIGHT, ...lines, ...parts, ...below), marks };
}

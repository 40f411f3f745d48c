/** Parallel coordinates: an axis for each thing in which runs differ, a line for each run. */

import { svg } from "../lib/dom.js";
import { drawing, extent, label, linear, mark } from "./parts.js";
import { numberFormat } from "./lines.js";

const HEIGHT = 220;
const TOP = 40;
const BOTTOM = 28;
const SIDE = 56;
const HUES = 6;
/** Numbers that have no place on an axis, as they are recorded. */
const NOT_FINITE = ["NaN", "Infinity", "-Infinity"];

/** The colour of a run by its place, as the legend and the line name it. @param {number} run */
export function hue(run) {
  return `hue${run % HUES}`;
}

const isPresent = (value) => value !== null && value !== undefined;

/** An axis of numbers, without those that are not finite, or of names in their order; and the values that have a place. @param {string} name @param {any[]} values */
export function axis(name, values) {
  const finite = values.map((value) => (NOT_FINITE.includes(value) ? null : value));
  const hasNumbers = finite.some((value) => typeof value === "number");
  const placed =
    hasNumbers && finite.every((value) => !isPresent(value) || typeof value === "number") ? finite : values;
  const present = placed.filter(isPresent);
  const range = [HEIGHT - BOTTOM, TOP];
  if (present.length && present.every((value) => typeof value === "number")) {
    const [low, high] = extent(present);
    const text = numberFormat(low, high);
    return { name, placed, place: linear([low, high], range), ends: [text(low), text(high)] };
  }
  const names = [...new Set(present.map(String))].sort();
  const place = linear([0, Math.max(1, names.length - 1)], range);
  return { name, placed, place: (value) => place(names.indexOf(String(value))), ends: [names[0], names.at(-1)] };
}

/**
 * @param {number} width
 * @param {{axes: {name: string, values: any[]}[], runs: {key: string, text: string, best?: boolean, open: () => void}[]}} data
 */
export function coordinates(width, { axes, runs }) {
  const scales = axes.map(({ name, values }) => axis(name, values));
  const x = linear([0, axes.length - 1], [SIDE, width - SIDE]);
  const letters = Math.max(6, Math.floor((width - 2 * SIDE) / Math.max(1, axes.length - 1) / 7));
  const short = (text = "") => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);
  const lines = scales.flatMap(({ name, ends }, at) => [
    svg("line", { x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM, class: "wb-chart-axis" }),
    label(x(at), 14, short(name), { "text-anchor": "middle", class: "wb-chart-name" }),
    label(x(at), 32, short(ends[1]), { "text-anchor": "middle" }),
    label(x(at), HEIGHT - BOTTOM + 16, short(ends[0]), { "text-anchor": "middle" }),
  ]);
  const marks = runs.map(({ key, text, best, open }, run) => {
    const points = scales.map(({ place, placed }, at) => [x(at), placed[run], place]);
    const present = points.filter(([, value]) => isPresent(value));
    const d = present.map(
      ([left, value, place], at) => `${at ? "L" : "M"}${left.toFixed(1)} ${place(value).toFixed(1)}`,
    );
    const line = svg("path", { d: d.join(""), class: `wb-chart-run ${best ? "wb-best" : ""}`, "data-state": hue(run) });
    const wide = svg("path", { d: d.join(""), class: "wb-chart-reach" });
    return mark(svg("g", {}, wide, line), key, text, open);
  });
  return { picture: drawing(width, HEIGHT, ...lines, ...marks.map(({ element }) => element)), marks };
}

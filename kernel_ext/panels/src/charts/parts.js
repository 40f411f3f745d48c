/** What charts are drawn of: places and values of axes, lines, and marks that a key or a click can open. */

import { svg, textNode } from "../lib/dom.js";

/** The counts that an axis from 0 names: whole round ones, 0 and about `count` more, the last not below `highest`. @param {number} highest @param {number} [count] @returns {number[]} */
export function ticks(highest, count = 2) {
  const top = highest > 0 ? highest : 1;
  const rough = top / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const round = [1, 2, 5, 10].map((factor) => factor * power).find((factor) => factor >= rough * (1 - 1e-9));
  const step = Math.max(1, round);
  const values = [];
  for (let at = 0; at < Math.ceil(top / step - 1e-9) + 1; at += 1) values.push(Number((at * step).toPrecision(12)));
  return values;
}

/** A function from values to places. A span of no length is drawn in its middle. @param {[number, number]} values @param {[number, number]} places */
export function linear([from, to], [begin, end]) {
  const span = to - from;
  return (value) => (span ? begin + ((value - from) / span) * (end - begin) : (begin + end) / 2);
}

/** Times that an axis names, evenly apart. @param {number} since in ms @param {number} until @param {number} count @returns {number[]} */
export function times(since, until, count) {
  return Array.from({ length: count }, (_, at) => since + ((until - since) * at) / (count - 1));
}

/** The lowest and the highest number; null without any. @param {number[]} values @returns {[number, number]|null} */
export function extent(values) {
  const finite = values.filter(Number.isFinite);
  if (!finite.length) return null;
  return finite.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [finite[0], finite[0]]);
}

export const MARGIN = { left: 36, right: 8, top: 8, bottom: 20 };

/** Text on a chart; inert. */
export function label(x, y, text, attributes = {}) {
  return svg("text", { x, y, class: "wb-chart-label", ...attributes }, textNode(text));
}

/** An empty drawing; the table behind it says the same to screen readers. @param {number} width @param {number} height */
export function drawing(width, height, ...children) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "wb-chart" }, ...children);
}

/** Lines across the chart at numbers, with their names at the left. @param {number} width @param {(value: number) => number} place @param {number[]} values @param {(value: number) => string} text */
export function gridLines(width, place, values, text, left = MARGIN.left) {
  return values.flatMap((value) => [
    svg("line", { x1: left, x2: width - MARGIN.right, y1: place(value), y2: place(value), class: "wb-chart-grid" }),
    label(left - 6, place(value) + 4, text(value), { "text-anchor": "end" }),
  ]);
}

/** Names below the chart. @param {number} y @param {{x: number, text: string}[]} names the first and last stay inside */
export function namesBelow(y, names) {
  return names.map(({ x, text }, at) => {
    const anchor = at === 0 ? "start" : at === names.length - 1 ? "end" : "middle";
    return label(x, y, text, { "text-anchor": anchor });
  });
}

/**
 * Something on a chart that can be reached by keys, says what it is, and may open its details.
 * @param {SVGElement} element @param {string} key by which it is found again when the chart is drawn anew
 * @param {string} text @param {(() => void)|null} [open]
 */
export function mark(element, key, text, open = null) {
  element.dataset.key = key;
  element.dataset.lmSuppressShortcuts = "true";
  element.classList.add("wb-chart-mark");
  element.setAttribute("role", open ? "button" : "img");
  element.setAttribute("aria-label", text);
  return { element, key, text: element.getAttribute("aria-label"), open };
}

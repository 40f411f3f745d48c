/** What charts are drawn of: axes, columns, lines, and marks that a key or a click can open. */

import { svg, textNode } from "../lib/dom.js";

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

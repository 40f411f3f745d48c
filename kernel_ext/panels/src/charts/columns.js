/** Stacked columns over time. */

import { svg } from "../lib/dom.js";
import { shortNumber } from "../lib/format.js";
import { MARGIN, drawing, gridLines, linear, mark, namesBelow, ticks, times } from "./parts.js";

const HEIGHT = 132;
const GAP = 1;

/**
 * @param {number} width
 * @param {{starts: number[], until: number, clock: (ms: number) => string, text: (at: number) => string,
 *   layers: {state: string, values: number[]}[]}} data `layers` from the ground up
 */
export function columns(width, { starts, until, clock, text, layers }) {
  const sums = starts.map((_, at) => layers.reduce((sum, { values }) => sum + values[at], 0));
  const values = ticks(Math.max(...sums, 1));
  const left = MARGIN.left + 8 * Math.max(0, shortNumber(values.at(-1)).length - 4);
  const x = linear([0, starts.length], [left, width - MARGIN.right]);
  const y = linear([0, values.at(-1)], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const marks = starts.map((_, at) => column(at, x, y, layers, text)).filter(({ at }) => sums[at]);
  const places = times(0, starts.length, width < 360 ? 2 : 4);
  const names = places.map((at) => ({ x: x(at), text: clock(starts[0] + ((until - starts[0]) * at) / starts.length) }));
  const picture = drawing(
    width,
    HEIGHT,
    ...gridLines(width, y, values, shortNumber, left),
    ...marks.map(({ made }) => made.element),
    ...namesBelow(HEIGHT - 4, names),
  );
  return { picture, marks: marks.map(({ made }) => made) };
}

function column(at, x, y, layers, text) {
  let ground = 0;
  const parts = layers.map(({ state, values }) => {
    const [from, to] = [y(ground), y(ground + values[at])];
    ground += values[at];
    const size = { width: Math.max(1, x(at + 1) - x(at) - GAP), height: Math.max(0, from - to) };
    return svg("rect", { x: x(at), y: to, ...size, class: "wb-chart-area", "data-state": state });
  });
  const room = { x: x(at), y: MARGIN.top, width: x(at + 1) - x(at), height: HEIGHT - MARGIN.bottom - MARGIN.top };
  const group = svg("g", {}, svg("rect", { ...room, class: "wb-chart-room" }), ...parts);
  return { at, made: mark(group, String(at), text(at)) };
}

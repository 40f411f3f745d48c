/** Bars in lanes over time: who worked at what, and when. */

import { svg } from "../lib/dom.js";
import { MARGIN, drawing, label, linear, mark, namesBelow, times } from "./parts.js";

const LANE = 24;
const BAR = 14;
const LETTER = 6.6;
const MIN_BAR = 3;

/**
 * @param {number} width
 * @param {{since: number, until: number, clock: (ms: number) => string,
 *   lanes: {name: string, open: (() => void)|null}[],
 *   bars: {lane: number, from: number, to: number, state: string, key: string, text: string, open: () => void}[]}} data
 */
export function gantt(width, { since, until, clock, lanes, bars }) {
  const longest = Math.max(...lanes.map(({ name }) => name.length));
  const left = Math.min(width * 0.3, 160, 12 + longest * LETTER);
  const letters = Math.max(4, Math.floor((left - 12) / LETTER));
  const height = lanes.length * LANE + MARGIN.bottom;
  const x = linear([since, until], [left, width - MARGIN.right]);
  const rows = lanes.flatMap(({ name }, at) => [
    svg("line", {
      x1: left,
      x2: width - MARGIN.right,
      y1: (at + 1) * LANE,
      y2: (at + 1) * LANE,
      class: "wb-chart-grid",
    }),
    label(0, at * LANE + 16, name.length > letters ? `${name.slice(0, letters - 1)}…` : name),
  ]);
  const marks = bars.map((bar) => {
    const [from, to] = [x(Math.max(since, bar.from)), x(Math.min(until, bar.to))];
    const place = { x: from, y: bar.lane * LANE + (LANE - BAR) / 2, width: Math.max(MIN_BAR, to - from), height: BAR };
    const rect = svg("rect", { ...place, rx: 2, class: "wb-chart-bar", "data-state": bar.state });
    return mark(rect, bar.key, bar.text, bar.open);
  });
  const names = times(since, until, width < 480 ? 2 : 4).map((at) => ({ x: x(at), text: clock(at) }));
  const below = namesBelow(height - 4, names);
  return { picture: drawing(width, height, ...rows, ...marks.map(({ element }) => element), ...below), marks };
}

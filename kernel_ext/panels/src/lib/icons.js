/** Icons of 16 by 16. Each has a shape of its own: colour is never the only difference. */

import { svg } from "./dom.js";

const ring = "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2Z";
const disc = "M8 1.25a6.75 6.75 0 1 1 0 13.5 6.75 6.75 0 0 1 0-13.5Z";

/** @type {Record<string, {d: string, fill?: boolean}[]>} */
const SHAPES = {
  tool: [{ d: "M9.5 6.5 3.25 12.75M9 2.5a3.5 3.5 0 1 0 4.5 4.5L11 7.5 8.5 5Z" }],
  pending: [{ d: ring }],
  blocked: [{ d: ring }, { d: "M6.5 5.75v4.5M9.5 5.75v4.5" }],
  claimed: [{ d: ring }, { d: "M8 6a2 2 0 1 1 0 4 2 2 0 0 1 0-4Z", fill: true }],
  in_progress: [{ d: ring }, { d: "M8 4a4 4 0 0 1 0 8Z", fill: true }],
  completed: [{ d: disc, fill: true }, { d: "M5 8.25 7.25 10.5 11.25 6" }],
  failed: [{ d: disc, fill: true }, { d: "M5.75 5.75l4.5 4.5M10.25 5.75l-4.5 4.5" }],
  cancelled: [{ d: ring }, { d: "M4 12 12 4" }],
  registration: [
    { d: "M8 2.25a2.75 2.75 0 1 1 0 5.5 2.75 2.75 0 0 1 0-5.5Z" },
    { d: "M2.75 13.75C3 11 5.25 9.75 8 9.75s5 1.25 5.25 4" },
  ],
  integration: [
    { d: "M4.5 2a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5Z" },
    { d: "M4.5 10.5a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5Z" },
    { d: "M11.5 6.25a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5Z" },
    { d: "M4.5 5.5v5M4.5 5.5C4.5 7.5 6.5 8 9.75 8" },
  ],
  branch: [
    { d: "M4.5 2a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5Z" },
    { d: "M4.5 10.5a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5Z" },
    { d: "M11.5 2a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5Z" },
    { d: "M4.5 5.5v5M11.5 5.5c0 3-3.5 2.5-6.5 4.5" },
  ],
  shield: [{ d: "M8 1.75 13 3.5v4c0 3.25-2 5.5-5 6.75-3-1.25-5-3.5-5-6.75v-4Z" }, { d: "M5.75 8 7.5 9.75 10.5 6.5" }],
  question: [{ d: ring }, { d: "M6.25 6.25C6.25 5 7 4.5 8 4.5s1.75.5 1.75 1.5C9.75 7.25 8 7.5 8 9M8 10.75v.75" }],
  hint: [{ d: ring }, { d: "M8 7.5v3.5M8 5v.75" }],
  twisty: [{ d: "M6 4l4 4-4 4" }],
  warning: [{ d: "M8 2.25 14.25 13.5H1.75Z" }, { d: "M8 6.5v3M8 11v.75" }],
};

/** The icon of a state, a kind of approval or a control. Decoration: the word beside it says the same. @returns {SVGElement} */
export function icon(name) {
  const { shape, paths } = shapeOf(name);
  const elements = paths.map(({ d, fill }) => svg("path", { d, class: fill ? "wb-fill" : "wb-stroke" }));
  return svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true", class: `wb-icon wb-icon-${shape}` }, ...elements);
}

/** What an icon is drawn with. */
export function shapeOf(name) {
  const shape = SHAPES[name] ? name : "question";
  return { shape, paths: SHAPES[shape] };
}

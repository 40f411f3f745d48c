/** What an agent says it can do. */

import { h } from "../lib/dom.js";
import { brief } from "../lib/format.js";

/** Everything an agent says it can do. @returns {HTMLElement|null} */
export function capabilities(known) {
  const entries = Object.entries(known ?? {}).slice(0, 12);
  if (!entries.length) return null;
  return h(
    "div",
    {},
    h("div", { class: "wb-label" }, "What it says it can do"),
    h("ul", { class: "wb-list" }, ...entries.map(([name, value]) => fact(name, value))),
  );
}

function fact(name, value) {
  return h(
    "li",
    {},
    h("span", { class: "wb-muted wb-term" }, brief(name, 60)),
    h("code", { class: "wb-wrap" }, brief(value)),
  );
}

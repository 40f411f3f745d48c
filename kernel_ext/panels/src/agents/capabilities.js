/** What an agent says it can do: any JSON object, which it sent when it registered. */

import { labelled } from "../lib/blocks.js";
import { h } from "../lib/dom.js";
import { oneLine } from "../lib/format.js";

const MOST = 12;

/** A value of any shape as one line: lists without brackets, the rest as JSON. @param {unknown} value @param {number} [limit] */
export function capabilityText(value, limit) {
  const plain = (one) => (typeof one === "string" ? one : JSON.stringify(one));
  return oneLine(Array.isArray(value) ? value.map(plain).join(", ") : value, limit);
}

/** Capabilities as a list with a label. @param {Record<string, unknown>|null} known @returns {HTMLElement|null} */
export function capabilityList(known) {
  const entries = Object.entries(known ?? {}).slice(0, MOST);
  if (!entries.length) return null;
  const line = ([name, value]) =>
    h(
      "li",
      {},
      h("span", { class: "wb-muted wb-term" }, oneLine(name, 60)),
      h("code", { class: "wb-wrap" }, capabilityText(value)),
    );
  return labelled("Capabilities it reports", h("ul", { class: "wb-list" }, ...entries.map(line)));
}

/** Bars beside their names: a list, each line of which may open what it is about. Read as text it says the same. */

import { button } from "../lib/controls.js";
import { h, renew } from "../lib/dom.js";

/** @typedef {{name: string, open?: () => void, share: number, tick?: number, state?: string, text: string, title?: string}} Bar shares of the whole width */

export class Bars {
  /** @param {string} name for screen readers */
  constructor(name) {
    this.element = h("ul", { class: "wb-shares", "aria-label": name });
    this.drawn = "";
    this.names = "";
  }

  /** Lines of the same names stay what they are, and what has the focus keeps it. @param {Bar[]} bars */
  show(bars) {
    const key = JSON.stringify(bars);
    if (key === this.drawn) return;
    this.drawn = key;
    const at = [...this.element.children].findIndex((line) => line.contains(document.activeElement));
    const names = JSON.stringify(bars.map(({ name }) => name));
    if (names !== this.names) this.element.replaceChildren();
    this.names = names;
    renew(this.element, ...bars.map(bar));
    if (at >= 0) this.element.children[Math.min(at, bars.length - 1)]?.querySelector("button")?.focus();
  }
}

/** @param {Bar} one */
function bar({ name, open, share, tick, state = "in_progress", text, title }) {
  const label = open ? button(name, "wb-link wb-cut", open) : h("span", { class: "wb-cut" }, name);
  const fill = h("span", { class: "wb-share-fill", "data-state": state, style: `width: ${100 * clamp(share)}%` });
  const until = tick === undefined ? null : h("span", { class: "wb-share-tick", style: `left: ${100 * clamp(tick)}%` });
  const track = h("span", { class: "wb-share", "aria-hidden": "true" }, fill, until);
  return h(
    "li",
    { title },
    h("span", { class: "wb-share-name wb-cut" }, label),
    track,
    h("span", { class: "wb-share-text" }, text),
  );
}

function clamp(share) {
  return Math.max(0, Math.min(1, share));
}

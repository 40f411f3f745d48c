/**
 * Filters with their counts, one of them active. A filter that nothing matches is hidden; but none comes or goes under
 * the pointer, or a click would meet the neighbour of the filter that was aimed at, or nothing.
 */

import { h, setAttribute, setText } from "./dom.js";

/** `key` null matches everything; `mark` makes the icon before the label. @typedef {{key: string|null, label: string, count: number, mark?: () => Node}} Chip */

export class Chips {
  /** @param {string} name for screen readers @param {(key: string|null) => void} onChoose */
  constructor(name, onChoose) {
    this.onChoose = onChoose;
    this.chosen = null;
    this.made = new Map();
    this.chips = [];
    const pointerleave = () => this.showMatching();
    this.element = h("div", { class: "wb-chips", role: "group", "aria-label": name, on: { pointerleave } });
  }

  /** @param {Chip[]} chips always the same ones in the same order @param {string|null} chosen */
  update(chips, chosen) {
    this.chosen = chosen;
    this.chips = chips;
    for (const chip of chips) this.draw(chip);
    if (!this.element.matches(":hover")) this.showMatching();
  }

  draw({ key, label, count, mark }) {
    if (!this.made.has(key)) this.add(key, label, mark);
    const { element, number } = this.made.get(key);
    setText(number, count.toLocaleString("en"));
    setAttribute(element, "aria-pressed", this.chosen === key);
  }

  showMatching() {
    for (const { key, count } of this.chips) {
      this.made.get(key).element.hidden = key !== null && !count && this.chosen !== key;
    }
  }

  add(key, label, mark) {
    const number = h("span", { class: "wb-chip-count" });
    const click = () => this.onChoose(this.chosen === key ? null : key);
    const attributes = { class: "wb-chip", type: "button", on: { click } };
    const element = h("button", attributes, mark?.(), h("span", {}, label), number);
    this.made.set(key, { element, number });
    this.element.append(element);
  }
}

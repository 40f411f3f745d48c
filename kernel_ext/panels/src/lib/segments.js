/** A choice between a few views of the same things: buttons joined to one. */

import { button } from "./controls.js";
import { h, setAttribute, setText } from "./dom.js";

export class Segments {
  /**
   * @param {Record<string, string>} labels by key
   * @param {string} name for screen readers
   * @param {(key: string) => void} onChoose
   */
  constructor(labels, name, onChoose) {
    this.buttons = Object.fromEntries(
      Object.entries(labels).map(([key, label]) => [key, button(label, "wb-segment", () => onChoose(key))]),
    );
    this.element = h(
      "div",
      { class: "wb-segments", role: "group", "aria-label": name },
      ...Object.values(this.buttons),
    );
  }

  /** @param {string} chosen */
  show(chosen) {
    for (const [key, element] of Object.entries(this.buttons)) setAttribute(element, "aria-pressed", key === chosen);
  }

  /** @param {string} key @param {string} label */
  setLabel(key, label) {
    setText(this.buttons[key], label);
  }
}

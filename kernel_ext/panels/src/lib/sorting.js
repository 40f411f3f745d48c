/** Sorting a table by a column: its headings as buttons, and the order that they choose. */

import { button } from "./controls.js";
import { h, setAttribute } from "./dom.js";

const names = new Intl.Collator("en", { numeric: true });
/** The order of names: ada-4 comes before ada-12. @param {string} one @param {string} other */
export const inOrder = (one, other) => names.compare(one, other);
/** What a press on a heading changes its direction to. */
export const NEXT = { none: "ascending", ascending: "descending", descending: "none" };

export class Sorting {
  /**
   * A press on a heading sorts by its column, a second one turns the order round, a third one ends the sorting.
   * @param {Record<string, string>} columns labels by key
   * @param {() => void} onChange
   */
  constructor(columns, onChange) {
    this.onChange = onChange;
    /** @type {string|null} the column that is sorted by */
    this.by = null;
    this.direction = "none";
    /** The content of each heading, by key. */
    this.buttons = Object.fromEntries(
      Object.entries(columns).map(([key, label]) => [key, button(label, "wb-sort", () => this.press(key))]),
    );
  }

  /** A heading. @param {string} key @param {string} tag @param {Record<string, any>} attributes */
  heading(key, tag, attributes) {
    return h(tag, { ...attributes, "aria-sort": "none" }, this.buttons[key]);
  }

  press(key) {
    const direction = NEXT[this.by === key ? this.direction : "none"];
    this.set(direction === "none" ? null : { by: key, direction });
    this.onChange();
  }

  /** What is sorted by, to be saved; null: nothing. @returns {{by: string, direction: string}|null} */
  state() {
    return this.by === null ? null : { by: this.by, direction: this.direction };
  }

  /** Sort as `state` gave it. @param {{by: string, direction: string}|null} [state] */
  set(state) {
    const isValid = state && state.by in this.buttons && state.direction in NEXT;
    this.by = isValid ? state.by : null;
    this.direction = isValid ? state.direction : "none";
    for (const [other, element] of Object.entries(this.buttons)) {
      setAttribute(element.parentElement, "aria-sort", other === this.by ? this.direction : "none");
    }
  }

  /**
   * The items in the chosen order; those without a value come last, those with the same one stay as they are.
   * @template T @param {T[]} items @param {(item: T, key: string) => string|number|null|undefined} valueOf @returns {T[]}
   */
  sorted(items, valueOf) {
    return this.by === null ? items : sortedBy(items, (item) => valueOf(item, this.by), this.direction);
  }
}

/** The items by a value; those without one come last, those with the same one stay as they are. */
export function sortedBy(items, valueOf, direction) {
  const sign = direction === "descending" ? -1 : 1;
  const keyed = items.map((item) => ({ item, value: valueOf(item) ?? "" }));
  keyed.sort((a, b) => Number(a.value === "") - Number(b.value === "") || sign * compare(a.value, b.value));
  return keyed.map(({ item }) => item);
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return names.compare(String(a), String(b));
}

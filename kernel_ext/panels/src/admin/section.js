/** A section of the Admin tab, and a list in it that follows a table. */

import { freshId, h } from "../lib/dom.js";

/** @param {string} title @param {string} description "" for none @param {...HTMLElement} content */
export function section(title, description, ...content) {
  const id = freshId("section");
  const heading = h("h3", { class: "wb-heading", id }, title);
  const about = description ? h("p", { class: "wb-muted" }, description) : null;
  const attributes = { class: "wb-section wb-stack", "aria-labelledby": id };
  return h("section", attributes, h("div", {}, heading, about), ...content);
}

/** Redraws a table's rows only when they have changed. */
export class TableWatch {
  /** @param {() => Map<any, any>} table @param {(rows: any[]) => void} draw */
  constructor(table, draw) {
    this.table = table;
    this.draw = draw;
    this.drawn = null;
  }

  update() {
    const rows = [...this.table().values()];
    if (this.drawn?.length === rows.length && rows.every((row, at) => row === this.drawn[at])) return;
    this.drawn = rows;
    this.draw(rows);
  }
}

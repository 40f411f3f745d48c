/** A chart with the sentence that says what it shows, a line that says what is pointed at, and a table behind it. */

import { plainTable } from "../lib/blocks.js";
import { button } from "../lib/controls.js";
import { freshId, h, renew, setAttribute, setText } from "../lib/dom.js";

/**
 * What a figure shows. `table` has what the drawing has, and `draw` makes the drawing for a width; without them there is
 * only the sentence.
 * @typedef {{element: SVGElement, key: string, text: string, open: (() => void)|null}} Mark
 * @typedef {{sentence: string, legend?: [string, string][], table?: {columns: string[], rows: (string|number)[][]},
 *   draw?: (width: number) => {picture: SVGElement, marks: Mark[]}}} Shown
 */

const MOVES = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export class Figure {
  /** @param {string} name a noun for the heading @param {AbortSignal} signal @param {string} [style] a further class */
  constructor(name, signal, style = "") {
    const id = freshId("figure");
    this.name = name;
    this.marks = [];
    this.sentence = h("p", { class: "wb-figure-sentence" });
    this.legend = h("ul", { class: "wb-legend" });
    this.readout = h("p", { class: "wb-readout", "aria-live": "off" });
    this.canvas = h("div", { class: "wb-canvas", role: "group", "aria-labelledby": id });
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    for (const type of ["pointerover", "focusin"]) this.canvas.addEventListener(type, (event) => this.point(event));
    for (const type of ["pointerleave", "focusout"])
      this.canvas.addEventListener(type, () => setText(this.readout, ""));
    this.canvas.addEventListener("click", (event) => this.markOf(event.target)?.open?.());
    this.table = h("div", { class: "wb-figure-table", hidden: true, tabindex: 0, role: "group" });
    this.toggle = button("Table", "wb-link", () => this.setTable(this.table.hidden), `${name} as a table`);
    this.toggle.setAttribute("aria-pressed", "false");
    const head = h("div", { class: "wb-line" }, h("h4", { class: "wb-label wb-grow", id }, name), this.toggle);
    this.below = h("div", { class: "wb-line wb-figure-below" }, this.legend, this.readout);
    const parts = [head, this.sentence, this.canvas, this.below, this.table];
    this.element = h("div", { class: `wb-figure ${style}`, role: "figure", "aria-labelledby": id }, ...parts);
    const observer = new ResizeObserver(() => this.onResize());
    observer.observe(this.canvas);
    signal.addEventListener("abort", () => observer.disconnect(), { once: true });
  }

  /** @param {Shown} content */
  show(content) {
    this.shown = content;
    setText(this.sentence, content.sentence);
    this.toggle.hidden = !content.table;
    this.canvas.hidden = this.below.hidden = !content.draw;
    this.drawLegend();
    this.draw();
    if (!this.table.hidden) this.drawTable();
  }

  onResize() {
    const width = Math.floor(this.canvas.clientWidth);
    if (width && width !== this.width) this.draw();
  }

  /** Draw for the present width. Marks that were there stay, with the focus and the pointer that is on them. */
  draw() {
    this.width = Math.floor(this.canvas.clientWidth);
    if (!this.shown?.draw || !this.width) return;
    const focused = this.canvas.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const { picture, marks } = this.shown.draw(this.width);
    const keys = marks.map(({ key }) => key).join(" ");
    if (keys !== this.keys) this.canvas.replaceChildren();
    this.keys = keys;
    const stay = renew(this.canvas, picture);
    this.marks = stay ? marks.map((mark, at) => ({ ...mark, element: this.marks[at].element })) : marks;
    const current = this.marks.find(({ key }) => key === (focused ?? this.current)) ?? this.marks[0];
    for (const mark of this.marks) mark.element.setAttribute("tabindex", mark === current ? 0 : -1);
    if (focused !== null && current) current.element.focus();
    if (this.readout.textContent && current?.key === this.current) setText(this.readout, current.text);
  }

  drawLegend() {
    const key = JSON.stringify(this.shown.legend ?? []);
    if (key === this.drawnLegend) return;
    this.drawnLegend = key;
    const entries = (this.shown.legend ?? []).map(([state, text]) =>
      h("li", {}, h("span", { class: "wb-swatch", "data-state": state }), text),
    );
    this.legend.replaceChildren(...entries);
  }

  setTable(on) {
    this.table.hidden = !on;
    setAttribute(this.toggle, "aria-pressed", on);
    if (on) this.drawTable();
  }

  drawTable() {
    const { columns, rows } = this.shown.table ?? { columns: [], rows: [] };
    this.table.setAttribute("aria-label", this.name);
    renew(this.table, plainTable(columns, rows));
  }

  markOf(target) {
    const key = target.closest?.("[data-key]")?.dataset.key;
    return this.marks.find((mark) => mark.key === key);
  }

  point({ target }) {
    const mark = this.markOf(target);
    setText(this.readout, mark?.text ?? "");
    if (mark) this.current = mark.key;
  }

  onKey(event) {
    const at = this.marks.findIndex(({ element }) => element === event.target);
    if (at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const last = this.marks.length - 1;
    const to = { Home: 0, End: last }[event.key] ?? (event.key in MOVES ? at + MOVES[event.key] : null);
    if (to !== null) this.focus(Math.max(0, Math.min(last, to)), at);
    else if (event.key === "Enter" || event.key === " ") this.marks[at].open?.();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  focus(to, from) {
    this.marks[from].element.setAttribute("tabindex", -1);
    this.marks[to].element.setAttribute("tabindex", 0);
    this.marks[to].element.focus();
  }
}

/** The end of a process's log, live; it follows while it is read at its end. */

import { button } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { inProject } from "../lib/format.js";
import { added } from "../lib/log_lines.js";

const NEAR = 24;
const KEPT = 2_000;

export class ProcessLog {
  constructor() {
    this.lines = h("ol", { class: "wb-process-log" });
    this.empty = h("p", { class: "wb-empty" }, "It has written nothing yet.");
    this.box = h(
      "div",
      {
        class: "wb-log",
        role: "log",
        "aria-label": "Log",
        tabindex: 0,
        on: { scroll: () => this.drawJump() },
      },
      this.empty,
      this.lines,
    );
    this.jump = button("Follow again", "wb-link", () => this.toEnd());
    this.where = h("span", { class: "wb-muted wb-cut wb-grow" });
    this.element = h(
      "div",
      {},
      h("div", { class: "wb-toolbar" }, h("span", { class: "wb-label" }, "Log"), this.where, this.jump),
      this.box,
    );
    this.clear();
  }

  clear() {
    this.known = [];
    this.lines.replaceChildren();
    this.empty.hidden = true;
    this.jump.hidden = true;
  }

  get atEnd() {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < NEAR;
  }

  /** @param {string[]} tail the newest lines @param {string} path where all of them are */
  take(tail, path) {
    this.where.textContent = inProject(path);
    this.where.title = path;
    const { atEnd } = this;
    const fresh = added(this.known, tail);
    if (fresh === tail) this.lines.replaceChildren();
    this.known = fresh === tail ? [...tail] : [...this.known, ...fresh].slice(-KEPT);
    this.lines.append(...fresh.map((line) => h("li", {}, line)));
    while (this.lines.childElementCount > this.known.length) this.lines.firstElementChild.remove();
    this.empty.hidden = this.known.length > 0;
    if (atEnd && fresh.length) this.box.scrollTop = this.box.scrollHeight;
    this.drawJump();
  }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
    this.box.focus();
    this.drawJump();
  }

  drawJump() {
    this.jump.hidden = this.atEnd;
  }
}

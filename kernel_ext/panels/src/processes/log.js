/** The end of a process's log. It scrolls along with what is written while a person reads its end. */

import { button } from "../lib/controls.js";
import { h, setAttribute, setText } from "../lib/dom.js";
import { projectPath } from "../lib/format.js";
import { newLines } from "../lib/log_tail.js";

const NEAR_PX = 24;
const MOST_LINES = 2_000;

export class ProcessLog {
  constructor() {
    this.lines = h("ol", { class: "wb-process-log" });
    this.empty = h("p", { class: "wb-empty" }, "No output yet.");
    this.box = h(
      "div",
      { class: "wb-log", role: "log", "aria-label": "Log", tabindex: 0, on: { scroll: () => this.drawFollow() } },
      this.empty,
      this.lines,
    );
    this.follow = button("Follow", "wb-link", () => this.toEnd());
    this.path = h("span", { class: "wb-muted wb-cut wb-grow" });
    const toolbar = h("div", { class: "wb-toolbar" }, h("span", { class: "wb-label" }, "Log"), this.path, this.follow);
    this.element = h("div", {}, toolbar, this.box);
    this.clear();
  }

  clear() {
    this.texts = [];
    this.lines.replaceChildren();
    this.empty.hidden = true;
    this.follow.hidden = true;
  }

  get atEnd() {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < NEAR_PX;
  }

  /** @param {string[]} tail the newest lines @param {string} path of the whole log */
  update(tail, path) {
    setText(this.path, projectPath(path));
    setAttribute(this.path, "title", path);
    const { atEnd } = this;
    const added = newLines(this.texts, tail);
    if (added === tail) this.lines.replaceChildren();
    this.texts = added === tail ? [...tail] : [...this.texts, ...added].slice(-MOST_LINES);
    this.lines.append(...added.map((line) => h("li", {}, line)));
    while (this.lines.childElementCount > this.texts.length) this.lines.firstElementChild.remove();
    this.empty.hidden = this.texts.length > 0;
    if (atEnd && added.length) this.box.scrollTop = this.box.scrollHeight;
    this.drawFollow();
  }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
    this.box.focus();
    this.drawFollow();
  }

  drawFollow() {
    this.follow.hidden = this.atEnd;
  }
}

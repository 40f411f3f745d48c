/** The gates of an integration: each command, how it stands, and the end of what it wrote. */

import { h, setText } from "../lib/dom.js";
import { duration } from "../lib/format.js";
import { icon } from "../lib/icons.js";

const ICONS = { waiting: "pending", running: "in_progress", passed: "completed", failed: "failed", timeout: "failed" };

export class Gates {
  constructor() {
    this.rows = [];
    this.list = h("ul", { class: "wb-gates", "aria-label": "Gates" });
    this.element = this.list;
  }

  /** @param {any[]} [gates] */
  update(gates = []) {
    this.element.hidden = !gates.length;
    while (this.rows.length > gates.length) this.rows.pop().element.remove();
    gates.forEach((gate, at) => {
      this.rows[at] ??= new GateRow(this.list);
      this.rows[at].show(gate);
    });
  }
}

/** One gate. What is open stays open while it goes on. */
class GateRow {
  constructor(list) {
    this.mark = h("span", { class: "wb-mark" });
    this.command = h("code", { class: "wb-cut wb-grow" });
    this.word = h("span", { class: "wb-muted wb-digits" });
    this.output = h("pre", { class: "wb-pre", tabindex: 0, "aria-label": "Output" });
    this.summary = h("summary", { class: "wb-gate", tabindex: 0 }, this.mark, this.command, this.word);
    this.details = h("details", { on: { toggle: () => this.toEnd() } }, this.summary, this.output);
    this.element = h("li", {}, this.details);
    list.append(this.element);
  }

  show(gate) {
    const { state, command, output } = gate;
    if (this.state !== state) this.mark.replaceChildren(icon(ICONS[state] ?? "question"));
    this.state = state;
    setText(this.command, command);
    this.command.title = command;
    setText(this.word, words(gate));
    const near = this.output.scrollHeight - this.output.scrollTop - this.output.clientHeight < 24;
    setText(this.output, output || (state === "running" ? "It has written nothing yet." : "It wrote nothing."));
    if (near) this.toEnd();
  }

  toEnd() {
    this.output.scrollTop = this.output.scrollHeight;
  }
}

function words({ state, seconds, exit_code: code }) {
  const took = typeof seconds === "number" ? duration(seconds * 1000) : "";
  return (
    {
      waiting: "waits",
      running: "running",
      passed: `passed${took && ` in ${took}`}`,
      failed: `failed${code === null || code === undefined ? "" : ` with ${code}`}${took && ` after ${took}`}`,
      timeout: `stopped${took && ` after ${took}`}: it took too long`,
    }[state] ?? state
  );
}

/** The gates of an integration: each command, its state, and the end of its output. */

import { h, setAttribute, setText } from "../lib/dom.js";
import { duration } from "../lib/format.js";
import { icon } from "../lib/icons.js";

const ICONS = { waiting: "pending", running: "in_progress", passed: "completed", failed: "failed", timeout: "failed" };
const NEAR_PX = 24;

export class Gates {
  constructor() {
    this.rows = [];
    this.element = h("ul", { class: "wb-gates", "aria-label": "Gates" });
  }

  /** @param {any[]} [gates] */
  update(gates = []) {
    this.element.hidden = !gates.length;
    while (this.rows.length > gates.length) this.rows.pop().element.remove();
    gates.forEach((gate, at) => {
      this.rows[at] ??= new GateRow(this.element);
      this.rows[at].show(gate);
    });
  }
}

/** One gate. It opens to its output, and stays open while that grows. */
class GateRow {
  constructor(list) {
    this.mark = h("span", { class: "wb-mark" });
    this.command = h("code", { class: "wb-cut wb-grow" });
    this.label = h("span", { class: "wb-muted wb-digits" });
    this.output = h("pre", { class: "wb-pre", tabindex: 0, "aria-label": "Output" });
    const summary = h("summary", { class: "wb-gate", tabindex: 0 }, this.mark, this.command, this.label);
    this.element = h("li", {}, h("details", { on: { toggle: () => this.toEnd() } }, summary, this.output));
    list.append(this.element);
  }

  show(gate) {
    const { state, command, output } = gate;
    if (this.state !== state) this.mark.replaceChildren(icon(ICONS[state] ?? "question"));
    this.state = state;
    setText(this.command, command);
    setAttribute(this.command, "title", command);
    setText(this.label, gateLabel(gate));
    const atEnd = this.output.scrollHeight - this.output.scrollTop - this.output.clientHeight < NEAR_PX;
    setText(this.output, output || (state === "running" ? "No output yet." : "No output."));
    if (atEnd) this.toEnd();
  }

  toEnd() {
    this.output.scrollTop = this.output.scrollHeight;
  }
}

function gateLabel({ state, seconds, exit_code: code }) {
  const took = typeof seconds === "number" ? duration(seconds * 1000) : "";
  const labels = {
    waiting: "waiting",
    running: "running",
    passed: `passed${took && ` in ${took}`}`,
    failed: `failed${code === null || code === undefined ? "" : ` with ${code}`}${took && ` after ${took}`}`,
    timeout: `timed out${took && ` after ${took}`}`,
  };
  return labels[state] ?? state;
}

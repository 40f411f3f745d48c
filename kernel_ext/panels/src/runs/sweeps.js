/** The sweeps: how far each is, and its runs. */

import { button } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { dateTime, plural } from "../lib/format.js";
import { KeyedList } from "../lib/keyed_list.js";

const PARTS = ["completed", "running", "failed"];
const STATES = { running: "in_progress" };

export class Sweeps {
  /** @param {(name: string) => void} onOpen */
  constructor(onOpen) {
    this.list = h("ul", { class: "wb-sweeps", "aria-label": "Sweeps" });
    const code = h("code", {}, "%workbench sweep");
    this.empty = h("p", { class: "wb-empty" }, "No sweeps yet. ", code, " runs a notebook with many parameters.");
    this.element = h("div", { class: "wb-stack" }, this.empty, this.list);
    this.lines = new KeyedList(this.list, () => new SweepLine(onOpen));
  }

  /** @param {any[]} sweeps newest first */
  update(sweeps) {
    const known = new Map(sweeps.map((sweep) => [sweep.id, sweep]));
    this.empty.hidden = sweeps.length > 0;
    this.lines.show([...known.keys()], (line, id) => line.show(known.get(id)));
  }
}

class SweepLine {
  constructor(onOpen) {
    this.name = button("", "wb-link wb-cut", () => onOpen(this.sweep.name));
    this.about = h("span", { class: "wb-muted wb-cut wb-grow" });
    this.counts = h("span", { class: "wb-cut" });
    const parts = PARTS.map((part) => h("span", { class: "wb-meter-part", "data-state": STATES[part] ?? part }));
    this.meter = h("div", { class: "wb-meter", "aria-hidden": "true" }, ...parts);
    const line = h("div", { class: "wb-line" }, this.name, this.about, this.counts);
    this.hint = h("p", { class: "wb-muted", hidden: true });
    this.elements = [h("li", { class: "wb-sweep" }, line, this.meter, this.hint)];
  }

  show(sweep) {
    this.sweep = sweep;
    const total = Number(sweep.specification.runs) || PARTS.reduce((sum, part) => sum + sweep[part], 0);
    setText(this.name, sweep.name);
    setText(this.about, `${sweep.notebook} · ${dateTime(sweep.created_at)}`);
    const ended = PARTS.filter((part) => sweep[part]).map((part) => `${sweep[part].toLocaleString("en")} ${part}`);
    setText(this.counts, [`${plural(total, "run")}`, ...ended].join(", "));
    PARTS.forEach((part, at) => {
      this.meter.children[at].style.width = `${total ? (100 * sweep[part]) / total : 0}%`;
    });
    this.hint.hidden = !sweep.failed || sweep.running > 0;
    if (!this.hint.hidden && !this.hint.firstChild) {
      this.hint.append("To run again what failed, repeat its command with ", h("code", {}, "--retry-failed"), ".");
    }
  }
}

/** The sweeps: how far each is, and its runs. */

import { button, copyButton } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { dateTime, plural } from "../lib/format.js";
import { KeyedList } from "../lib/keyed_list.js";

const PARTS = ["completed", "running", "failed"];
const STATES = { running: "in_progress" };

export class Sweeps {
  /** @param {(name: string) => void} onOpen @param {(text: string) => void} announce */
  constructor(onOpen, announce) {
    this.list = h("ul", { class: "wb-sweeps", "aria-label": "Sweeps" });
    const code = h("code", {}, "%workbench sweep");
    this.empty = h("p", { class: "wb-empty" }, "No sweeps yet. ", code, " runs a notebook with many parameters.");
    this.element = h("div", { class: "wb-stack" }, this.empty, this.list);
    this.lines = new KeyedList(this.list, () => new SweepLine(onOpen, announce));
  }

  /** @param {any[]} sweeps newest first */
  update(sweeps) {
    const known = new Map(sweeps.map((sweep) => [sweep.id, sweep]));
    this.empty.hidden = sweeps.length > 0;
    this.lines.show([...known.keys()], (line, id) => line.show(known.get(id)));
  }
}

class SweepLine {
  constructor(onOpen, announce) {
    this.announce = announce;
    this.name = button("", "wb-link wb-cut", () => onOpen(this.sweep.name));
    this.about = h("span", { class: "wb-muted wb-cut wb-grow" });
    this.counts = h("span", { class: "wb-cut" });
    const parts = PARTS.map((part) => h("span", { class: "wb-meter-part", "data-state": STATES[part] ?? part }));
    this.meter = h("div", { class: "wb-meter", "aria-hidden": "true" }, ...parts);
    const line = h("div", { class: "wb-line" }, this.name, this.about, this.counts);
    this.hint = h("div", { class: "wb-line", hidden: true });
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
      const cell = `%workbench sweep --name ${sweep.name} --retry-failed`; // a name has letters, digits, - and _
      const copy = copyButton(
        () => cell,
        `Copy the command that runs again what failed of ${sweep.name}`,
        this.announce,
      );
      this.hint.append(h("span", { class: "wb-muted" }, "Run again what failed:"), h("code", {}, cell), copy);
    }
  }
}

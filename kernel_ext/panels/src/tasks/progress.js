/** The progress of all tasks: a sentence and a bar. */

import { h, setAttribute, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { STATES } from "./outline.js";

const SEGMENTS = ["completed", "in_progress", "claimed", "failed"];

export class Progress {
  constructor() {
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.segments = Object.fromEntries(
      SEGMENTS.map((state) => [state, h("span", { class: "wb-meter-part", "data-state": state })]),
    );
    this.meter = h("div", { class: "wb-meter", role: "img" }, ...Object.values(this.segments));
  }

  /** @param {import("./outline.js").Outline} outline */
  update({ counts, total, tasks }) {
    const percent = total ? Math.floor((100 * counts.completed) / total) : 0;
    const done = `${counts.completed.toLocaleString("en")} of ${total.toLocaleString("en")} completed · ${percent} %`;
    setText(this.summary, total ? done : "");
    const parts = SEGMENTS.filter((state) => counts[state]).map(
      (state) => `${counts[state]} ${STATES[state].toLowerCase()}`,
    );
    setAttribute(
      this.meter,
      "aria-label",
      parts.length ? `${parts.join(", ")} of ${plural(total, "task")}` : "No task has begun",
    );
    for (const state of SEGMENTS) {
      this.segments[state].style.width = `${total ? (100 * counts[state]) / total : 0}%`;
    }
    this.meter.hidden = !tasks.size;
  }
}

/** How the work goes: progress, counts that are filters, and the task tree. */

import { freshId, h, setAttribute, setText } from "./dom.js";
import { counted } from "./format.js";
import { icon } from "./icons.js";
import { Outline, STATES } from "./outline.js";
import { TreeGrid } from "./treegrid.js";

const SEGMENTS = ["completed", "in_progress", "claimed", "failed"];

export class Work {
  /** @param {import("./store.js").Store} store */
  constructor(store) {
    this.store = store;
    this.view = { closed: new Set(), text: "", state: null };
    this.seen = null;
    this.grid = new TreeGrid((id, open) => this.toggle(id, open));
    const id = freshId("work");
    this.summary = h("span", { class: "wb-muted" });
    this.segments = Object.fromEntries(SEGMENTS.map((state) => [state, h("span", { class: `wb-part wb-part-${state}` })]));
    this.meter = h("div", { class: "wb-meter", role: "img" }, ...Object.values(this.segments));
    this.chips = new Map();
    this.chipBox = h("div", { class: "wb-chips", role: "group", "aria-label": "Show tasks by state" });
    this.search = h("input", {
      class: "wb-input wb-search",
      type: "search",
      placeholder: "Filter tasks",
      "aria-label": "Filter tasks by title, number, persona, worktree or agent",
      on: { input: () => this.filter({ text: this.search.value.trim() }), keydown: (event) => this.onSearchKey(event) },
    });
    this.nothing = h(
      "p",
      { class: "wb-empty" },
      "No task matches. ",
      h("button", { class: "wb-link", type: "button", on: { click: () => this.clear() } }, "Show all"),
    );
    this.empty = h(
      "p",
      { class: "wb-empty" },
      "No tasks yet. Write a plan in a ",
      h("code", {}, "%%plan"),
      " cell, or let a planner agent make tasks.",
    );
    this.element = h(
      "section",
      { class: "wb-section", "aria-labelledby": id },
      h("div", { class: "wb-bar-line" }, h("h3", { class: "wb-heading", id }, "Tasks"), this.summary, this.search),
      this.meter,
      this.chipBox,
      this.empty,
      this.nothing,
      this.grid.element,
    );
  }

  /** Bring everything up to date. */
  update() {
    this.outline = new Outline(this.store.tables.tasks);
    this.drawCounts();
    this.drawLines();
  }

  drawCounts() {
    const { counts, total, tasks } = this.outline;
    const percent = total ? Math.floor((100 * counts.completed) / total) : 0;
    setText(this.summary, total ? `${counts.completed.toLocaleString("en")} of ${total.toLocaleString("en")} completed · ${percent} %` : "");
    const parts = SEGMENTS.filter((state) => counts[state]).map((state) => `${counts[state]} ${STATES[state].toLowerCase()}`);
    setAttribute(this.meter, "aria-label", parts.length ? `Progress: ${parts.join(", ")} of ${total}` : "No progress yet");
    for (const state of SEGMENTS) this.segments[state].style.width = `${total ? (100 * counts[state]) / total : 0}%`;
    this.drawChip(null, "All", tasks.size);
    for (const [state, word] of Object.entries(STATES)) this.drawChip(state, word, counts[state]);
  }

  drawChip(state, word, count) {
    let chip = this.chips.get(state);
    if (!chip) {
      const number = h("span", { class: "wb-chip-count" });
      const click = () => this.filter({ state: this.view.state === state ? null : state });
      const element = h("button", { class: "wb-chip", type: "button", on: { click } }, state && icon(state), h("span", {}, word), number);
      chip = { element, number };
      this.chips.set(state, chip);
      this.chipBox.append(element);
    }
    setText(chip.number, count.toLocaleString("en"));
    setAttribute(chip.element, "aria-pressed", this.view.state === state);
    chip.element.hidden = state !== null && !count && this.view.state !== state;
  }

  drawLines() {
    const lines = this.outline.lines(this.view);
    const some = this.outline.tasks.size > 0;
    const known = this.store.version !== null;
    this.grid.update(lines, this.outline.tasks);
    this.empty.hidden = some || !known;
    for (const tool of [this.meter, this.chipBox, this.search]) tool.hidden = !some;
    this.nothing.hidden = !some || lines.length > 0;
    this.grid.element.hidden = lines.length === 0;
    return lines;
  }

  toggle(id, open) {
    if (open) this.view.closed.delete(id);
    else this.view.closed.add(id);
    this.drawLines();
  }

  filter(change) {
    Object.assign(this.view, change);
    this.drawCounts();
    const lines = this.drawLines();
    this.grid.element.scrollTop = 0;
    this.onFiltered?.(`${counted(lines.filter((line) => line.matches).length, "task")} shown.`);
  }

  clear() {
    this.search.value = "";
    this.filter({ text: "", state: null });
    this.search.focus();
  }

  onSearchKey(event) {
    if (event.key === "Escape" && this.search.value) {
      event.preventDefault();
      this.search.value = "";
      this.filter({ text: "" });
    } else if (event.key === "ArrowDown" && !this.grid.element.hidden) {
      event.preventDefault();
      this.grid.element.focus();
    }
  }
}

/** The tasks: how far they are, what narrows them, and them as a tree, a list or a graph, one of them opened beside. */

import { button } from "../lib/controls.js";
import { Filters } from "./filters.js";
import { counted } from "../lib/format.js";
import { freshId, h } from "../lib/dom.js";
import { Graph } from "./graph.js";
import { everything, Outline } from "./outline.js";
import { Segments } from "../lib/segments.js";
import { Progress } from "./progress.js";
import { TaskDetails } from "./task.js";
import { TreeGrid } from "./tree_grid.js";

const SHAPES = { tree: "Tree", list: "By priority", graph: "Graph" };
const FOLLOW_MS = 120;

export class Tasks {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   */
  constructor(store, channel, announce, signal) {
    this.store = store;
    this.announce = announce;
    this.wanted = everything();
    this.closed = new Set();
    this.shape = "tree";
    this.outline = new Outline(store.tables.tasks);
    const on = {
      toggle: (id, open) => this.toggle(id, open),
      open: (id) => this.open(id),
      move: (id) => this.follow(id),
    };
    this.grid = new TreeGrid(on);
    this.graph = new Graph(on);
    this.details = new TaskDetails(
      { store, channel, announce },
      { close: () => this.close(), jump: (id) => this.jump(id) },
      signal,
    );
    this.progress = new Progress();
    this.filters = new Filters(
      store,
      (change) => this.filter(change),
      () => this.shown.focus(),
    );
    this.shapes = new Segments(SHAPES, "Show tasks as", (shape) => this.turn(shape));
    const id = freshId("tasks");
    this.nothing = h(
      "p",
      { class: "wb-empty" },
      "No task matches. ",
      button("Show all", "wb-link", () => this.filters.clear()),
    );
    this.empty = h(
      "p",
      { class: "wb-empty" },
      "No tasks yet. Write a plan in a ",
      h("code", {}, "%%plan"),
      " cell, or let a planner agent make tasks.",
    );
    this.tools = [this.shapes.element, this.filters.search];
    this.main = h(
      "div",
      { class: "wb-split" },
      h("div", { class: "wb-split-list" }, this.grid.element, this.graph.element),
      this.details.element,
    );
    this.element = h(
      "section",
      { class: "wb-section wb-stack", "aria-labelledby": id, on: { keydown: (event) => this.onKey(event) } },
      h(
        "div",
        { class: "wb-toolbar" },
        h("h3", { class: "wb-heading", id }, "Tasks"),
        this.progress.summary,
        ...this.tools,
      ),
      this.progress.meter,
      this.filters.chips.element,
      this.filters.choiceBox,
      this.empty,
      this.nothing,
      this.main,
    );
  }

  /** What shows the tasks now. */
  get shown() {
    return this.shape === "graph" ? this.graph.box : this.grid.element;
  }

  /** Bring everything up to date. @param {Outline} outline */
  update(outline) {
    this.outline = outline;
    this.progress.update(outline);
    this.filters.update(outline, this.wanted);
    this.draw();
    this.details.update(outline);
  }

  /** @returns {number} how many tasks match */
  draw() {
    const { outline, wanted } = this;
    const graph = this.shape === "graph";
    const lines = this.shape === "list" ? outline.list(wanted) : graph ? [] : outline.tree(wanted, this.closed);
    const matching = graph ? outline.matching(wanted) : lines.filter((line) => line.matches);
    this.grid.update(lines, outline.tasks);
    this.graph.element.hidden = !graph || !matching.length;
    if (graph) this.graph.update(matching, outline, this.grid.active);
    this.grid.element.hidden = graph || !lines.length;
    const some = outline.tasks.size > 0;
    this.empty.hidden = some || this.store.version === null;
    this.nothing.hidden = !some || matching.length > 0;
    this.main.hidden = this.grid.element.hidden && this.graph.element.hidden && this.details.element.hidden;
    for (const tool of this.tools) tool.hidden = !some;
    this.shapes.show(this.shape);
    return matching.length;
  }

  turn(shape) {
    this.shape = shape;
    this.draw();
    this.grid.select(this.grid.active);
  }

  toggle(id, open) {
    if (open) this.closed.delete(id);
    else this.closed.add(id);
    this.draw();
  }

  filter(change) {
    Object.assign(this.wanted, change);
    this.filters.update(this.outline, this.wanted);
    this.grid.element.scrollTop = 0;
    this.announce(`${counted(this.draw(), "task")} shown.`);
  }

  /** @param {number} id */
  open(id) {
    clearTimeout(this.following);
    this.grid.active = id;
    this.main.classList.add("wb-open");
    this.details.show(id, this.outline);
    this.draw();
    this.grid.select(id);
  }

  /** What is open follows the arrow keys, once they rest. */
  follow(id) {
    this.grid.active = id;
    if (this.details.id === null) return;
    clearTimeout(this.following);
    this.following = setTimeout(() => this.details.id !== null && this.details.show(id, this.outline), FOLLOW_MS);
  }

  /** Open another task, wherever it is. */
  jump(id) {
    let parent = this.outline.tasks.get(id)?.parent_task_id;
    while (parent) {
      this.closed.delete(parent);
      parent = this.outline.tasks.get(parent)?.parent_task_id;
    }
    this.open(id);
    this.details.focus();
  }

  close() {
    clearTimeout(this.following);
    this.details.hide();
    this.main.classList.remove("wb-open");
    this.shown?.focus();
  }

  onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented || this.details.id === null) return;
    if (event.target === this.filters.search && this.filters.search.value) return;
    event.preventDefault();
    this.close();
  }
}

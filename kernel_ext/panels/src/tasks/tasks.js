/** The tasks: their progress, filters, and a tree, a list or a graph of them, with the details of one beside it. */

import { drawnIn, html } from "../components/ui.js";
import { Segments, button } from "../lib/controls.js";
import { freshId, h } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { TaskDetails } from "./details.js";
import { Filters } from "./filters.js";
import { Graph } from "./graph.js";
import { NewTaskForm } from "./new_form.js";
import { Outline, everything } from "./outline.js";
import { Progress } from "./progress.js";
import { PlanUse } from "../models/use.js";
import { SavedViews } from "../saved_views/saved_views.js";
import { TreeGrid } from "./tree_grid.js";

const MODES = { tree: "Tree", list: "By priority", graph: "Graph" };
/** The details follow the arrow keys after so long a pause. */
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
    this.filter = everything();
    this.collapsed = new Set();
    this.mode = "tree";
    /** The task to open as soon as its row has come. @type {number|null} */
    this.toOpen = null;
    /** @type {NewTaskForm|null} */
    this.form = null;
    this.outline = new Outline(store.tables.tasks);
    const on = {
      toggle: (id, open) => this.toggle(id, open),
      open: (id) => this.open(id),
      move: (id) => this.follow(id),
      sort: () => this.draw(),
    };
    this.grid = new TreeGrid(on);
    this.graph = new Graph(on);
    this.progress = new Progress();
    this.modes = new Segments(MODES, "Show tasks as", (mode) => this.setMode(mode));
    this.filters = new Filters(
      store,
      (change) => this.setFilter(change),
      () => this.view.focus(),
    );
    const desk = { store, channel, announce };
    this.desk = desk;
    this.views = new SavedViews(desk, "tasks", { read: () => this.state(), apply: (state) => this.apply(state) });
    this.details = new TaskDetails(desk, { close: () => this.close(), jump: (id) => this.jump(id) }, signal);
    this.element = this.section();
    this.drawPlan = drawnIn(this.planUse, signal);
  }

  section() {
    const id = freshId("tasks");
    this.noMatch = h(
      "p",
      { class: "wb-empty" },
      "No task matches the filters. ",
      button("Show all", "wb-link", () => this.filters.clear()),
    );
    this.empty = h(
      "p",
      { class: "wb-empty" },
      "No tasks yet. Write a plan in a ",
      h("code", {}, "%%plan"),
      " cell, let a planner agent create tasks, or create one yourself.",
    );
    this.formBox = h("div", {});
    this.planUse = h("div", {});
    this.newButton = button("New task…", "wb-button", () => this.openForm());
    this.tools = [this.modes.element, this.filters.search, this.views.element];
    const list = h("div", { class: "wb-split-list" }, this.grid.element, this.graph.element);
    this.main = h("div", { class: "wb-split" }, list, this.details.element);
    const heading = h("h3", { class: "wb-heading", id }, "Tasks");
    return h(
      "section",
      {
        class: "wb-section wb-stack",
        "aria-labelledby": id,
        on: { keydown: (event) => this.onKey(event) },
      },
      h("div", { class: "wb-toolbar wb-toolbar-full" }, heading, this.progress.summary, ...this.tools, this.newButton),
      this.formBox,
      this.progress.meter,
      this.filters.chips.element,
      this.filters.choiceBox,
      this.planUse,
      this.empty,
      this.noMatch,
      this.main,
    );
  }

  /** The plan that is shown: the one that was chosen, or the only one. */
  get plan() {
    const plans = [...this.outline.facets.plan];
    return this.filter.plan ?? (plans.length === 1 ? plans[0] : "");
  }

  /** The element that shows the tasks in this mode. */
  get view() {
    return this.mode === "graph" ? this.graph.box : this.grid.element;
  }

  /** Bring everything up to date. @param {Outline} outline */
  update(outline) {
    this.outline = outline;
    this.form?.update();
    if (outline.tasks.has(this.toOpen)) this.open(this.toOpen);
    this.progress.update(outline);
    this.filters.update(outline, this.filter);
    this.draw();
    this.details.update(outline);
  }

  /** @returns {number} how many tasks match the filters */
  draw() {
    const { outline, filter } = this;
    const graph = this.mode === "graph";
    const sort = (ids) => this.grid.sorting.sorted(ids, (id, column) => outline.valueOf(id, column));
    const lines =
      this.mode === "list" ? outline.list(filter, sort) : graph ? [] : outline.tree(filter, this.collapsed, sort);
    const matching = graph ? outline.matching(filter) : lines.filter((line) => line.matches);
    this.grid.update(lines, outline.tasks);
    this.graph.element.hidden = !graph || !matching.length;
    if (graph) this.graph.update(matching, outline, this.grid.active);
    this.grid.element.hidden = graph || !lines.length;
    const hasTasks = outline.tasks.size > 0;
    this.empty.hidden = hasTasks || this.store.version === null;
    this.noMatch.hidden = !hasTasks || matching.length > 0;
    this.main.hidden = this.grid.element.hidden && this.graph.element.hidden && this.details.element.hidden;
    for (const tool of this.tools) tool.hidden = !hasTasks;
    this.modes.show(this.mode);
    this.views.update();
    this.drawPlan(html`${this.plan && html`<${PlanUse} key=${this.plan} desk=${this.desk} plan=${this.plan} />`}`);
    return matching.length;
  }

  /** What is shown and how, to be saved. */
  state() {
    return { ...this.filter, mode: this.mode, sort: this.grid.sorting.state() };
  }

  /** Show what was saved. @param {any} state */
  apply({ mode, sort, ...filter }) {
    const every = everything();
    const values = Object.entries(filter).filter(([key]) => key in every);
    this.mode = mode in MODES ? mode : "tree";
    this.grid.sorting.set(sort);
    this.filters.search.value = filter.text ?? "";
    this.setFilter({ ...every, ...Object.fromEntries(values) });
  }

  setMode(mode) {
    this.mode = mode;
    this.draw();
    this.grid.select(this.grid.active);
  }

  toggle(id, open) {
    if (open) this.collapsed.delete(id);
    else this.collapsed.add(id);
    this.draw();
  }

  setFilter(change) {
    Object.assign(this.filter, change);
    this.filters.update(this.outline, this.filter);
    this.grid.element.scrollTop = 0;
    this.announce(`${plural(this.draw(), "task")} shown.`);
  }

  /** Open a task's details. @param {number} id */
  open(id) {
    clearTimeout(this.following);
    this.toOpen = null;
    this.grid.active = id;
    this.main.classList.add("wb-open");
    this.details.show(id, this.outline);
    this.draw();
    this.grid.select(id);
  }

  /** While details are open, show those of the line that the arrow keys rest on. */
  follow(id) {
    this.grid.active = id;
    if (this.details.id === null) return;
    clearTimeout(this.following);
    this.following = setTimeout(() => this.details.id !== null && this.details.show(id, this.outline), FOLLOW_MS);
  }

  /** Open another task, and expand what leads to it. */
  jump(id) {
    let parent = this.outline.tasks.get(id)?.parent_task_id;
    while (parent) {
      this.collapsed.delete(parent);
      parent = this.outline.tasks.get(parent)?.parent_task_id;
    }
    this.open(id);
    this.details.focus();
  }

  /** Only those that failed for good. */
  showFailed() {
    this.filters.search.value = "";
    this.setFilter({ ...everything(), state: "failed" });
  }

  openForm() {
    if (!this.form) {
      const form = new NewTaskForm(this.desk, (outcome) => this.onForm(form, outcome));
      this.form = form;
      this.formBox.append(form.element);
    }
    this.form.focus();
  }

  /** @param {NewTaskForm} form @param {any|null} outcome null: it was cancelled */
  onForm(form, outcome) {
    if (outcome) this.announce(`Task ${outcome.id} was created.`);
    if (this.form !== form) return; // cancelled before the answer came: what she does now goes on
    this.form = null;
    this.formBox.replaceChildren();
    this.newButton.focus();
    if (!outcome) return;
    this.toOpen = outcome.id;
    this.update(this.outline);
  }

  close() {
    clearTimeout(this.following);
    this.details.hide();
    this.main.classList.remove("wb-open");
    this.view?.focus();
  }

  onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented || this.details.id === null) return;
    if (event.target === this.filters.search && this.filters.search.value) return;
    event.preventDefault();
    this.close();
  }
}

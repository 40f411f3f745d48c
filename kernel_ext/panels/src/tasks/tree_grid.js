/** The task tree on screen: any number of lines, shown by a few elements that are reused while it scrolls. */

import { freshId, h, setAttribute, setText } from "../lib/dom.js";
import { timeOfDay } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { Sorting } from "../lib/sorting.js";
import { dueText, stateText, waitingText } from "./outline.js";

const ROW = 28;
const POOL = 36;
const OVERSCAN = 8;
const PAGE = 12;
const COLUMNS = {
  task: "Task",
  state: "State",
  priority: "Priority",
  persona: "Persona",
  worktree: "Worktree",
  agent: "Agent",
  progress: "Progress",
};

export class TreeGrid {
  /**
   * @param {{toggle: (id: number, open: boolean) => void, open: (id: number) => void, move: (id: number) => void,
   *   sort: () => void}} on a line is expanded or collapsed, its task is opened, another line becomes the active one, the
   *   order of a column is chosen
   */
  constructor(on) {
    this.on = on;
    /** @type {import("./outline.js").Line[]} */
    this.lines = [];
    this.tasks = new Map();
    /** @type {number|null} */
    this.active = null;
    this.pool = [];
    this.sorting = new Sorting(COLUMNS, () => on.sort());
    this.sizer = h("div", { class: "wb-grid-rows", role: "rowgroup" });
    this.element = h(
      "div",
      {
        class: "wb-grid wb-frame",
        role: "treegrid",
        tabindex: 0,
        "aria-label": "Tasks",
        "aria-colcount": Object.keys(COLUMNS).length,
      },
      h("div", { class: "wb-grid-head", role: "rowgroup" }, headRow(this.sorting)),
      this.sizer,
    );
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.sizer.addEventListener("click", (event) => this.onClick(event));
    this.element.addEventListener("focus", () => this.onFocus());
  }

  /** Show these lines. @param {import("./outline.js").Line[]} lines @param {Map<number, any>} tasks */
  update(lines, tasks) {
    this.lines = lines;
    this.tasks = tasks;
    this.hideEmptyColumns();
    this.sizer.style.height = `${lines.length * ROW}px`;
    setAttribute(this.element, "aria-rowcount", lines.length + 1);
    this.draw();
  }

  /** Hide columns without a value, so that the titles have more room. */
  hideEmptyColumns() {
    const used = { worktree: false, agent: false, priority: false };
    const [first] = this.tasks.values();
    for (const task of this.tasks.values()) {
      used.priority ||= task.priority !== first.priority;
      used.worktree ||= Boolean(task.worktree);
      used.agent ||= Boolean(task.assigned_agent_id);
    }
    for (const [name, on] of Object.entries(used)) this.element.classList.toggle(`wb-no-${name}`, !on);
  }

  draw() {
    const first = Math.max(0, Math.min(Math.floor(this.element.scrollTop / ROW) - OVERSCAN, this.lines.length - POOL));
    const last = Math.min(first + POOL, this.lines.length);
    while (this.pool.length < last - first) this.pool.push(this.sizer.appendChild(new Row().element).row);
    const visible = new Set();
    for (let index = first; index < last; index += 1) {
      const row = this.pool[index % this.pool.length];
      visible.add(row);
      row.show(this.lines[index], index, this.tasks.get(this.lines[index].id), this.lines[index].id === this.active);
    }
    for (const row of this.pool) row.element.hidden = !visible.has(row);
    const current = this.pool.find((row) => visible.has(row) && row.id === this.active);
    setAttribute(this.element, "aria-activedescendant", current?.element.id);
  }

  get activeIndex() {
    return this.lines.findIndex((line) => line.id === this.active);
  }

  /** Make a line the active one and scroll it into view. @param {number} index */
  goTo(index) {
    if (!this.lines.length) return;
    const at = Math.max(0, Math.min(index, this.lines.length - 1));
    if (this.active !== this.lines[at].id) this.on.move(this.lines[at].id);
    this.active = this.lines[at].id;
    const room = this.element.clientHeight - ROW;
    const top = at * ROW;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW > this.element.scrollTop + room) this.element.scrollTop = top + ROW - room;
    this.draw();
  }

  onFocus() {
    if (this.activeIndex < 0) this.goTo(Math.ceil(this.element.scrollTop / ROW));
  }

  onKey(event) {
    if (event.target !== this.element || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = this.activeIndex;
    const line = this.lines[at];
    const moves = {
      ArrowDown: () => this.goTo(at + 1),
      ArrowUp: () => this.goTo(at - 1),
      PageDown: () => this.goTo(at + PAGE),
      PageUp: () => this.goTo(at - PAGE),
      Home: () => this.goTo(0),
      End: () => this.goTo(this.lines.length - 1),
      ArrowRight: () => (line?.branch && !line.open ? this.on.toggle(line.id, true) : line?.open && this.goTo(at + 1)),
      ArrowLeft: () => (line?.open ? this.on.toggle(line.id, false) : this.goTo(this.parentOf(at))),
      Enter: () => line && this.on.open(line.id),
      " ": () => line?.branch && this.on.toggle(line.id, !line.open),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  parentOf(at) {
    const level = this.lines[at]?.level ?? 1;
    for (let index = at - 1; index >= 0; index -= 1) if (this.lines[index].level < level) return index;
    return at;
  }

  onClick(event) {
    const line = this.lineAt(event.target);
    if (!line) return;
    this.active = line.id;
    this.draw();
    if (line.branch && event.target.closest(".wb-twisty")) this.on.toggle(line.id, !line.open);
    else this.on.open(line.id);
  }

  /** Make a task the active one, and scroll to its line if there is one. @param {number} id */
  select(id) {
    this.active = id;
    const at = this.activeIndex;
    if (at >= 0) this.goTo(at);
    else this.draw();
  }

  lineAt(target) {
    const row = target.closest(".wb-row")?.row;
    return row && this.lines[row.index];
  }
}

/** One element; the line that it shows changes. */
class Row {
  constructor() {
    this.id = null;
    this.index = -1;
    this.state = "";
    this.indent = h("span", { class: "wb-indent" });
    this.twisty = h("span", { class: "wb-twisty" }, icon("twisty"));
    this.mark = h("span", { class: "wb-mark" });
    this.title = h("span", { class: "wb-title wb-cut" });
    this.number = h("span", { class: "wb-muted wb-number" });
    this.label = h("span", {});
    this.reason = h("span", { class: "wb-muted wb-cut" });
    this.persona = cell("persona");
    this.priority = cell("priority");
    this.worktree = cell("worktree");
    this.agent = cell("agent");
    this.fill = h("span", { class: "wb-bar-fill" });
    this.bar = h("span", { class: "wb-bar", "aria-hidden": "true" }, this.fill);
    this.amount = h("span", { class: "wb-amount" });
    this.element = h(
      "div",
      { class: "wb-row", role: "row", id: freshId("row") },
      cell("task", this.indent, this.twisty, this.mark, this.title, this.number),
      cell("state", this.label, this.reason),
      this.priority,
      this.persona,
      this.worktree,
      this.agent,
      cell("progress", this.bar, this.amount),
    );
    this.element.row = this;
  }

  show(line, index, task, active) {
    this.id = line.id;
    this.index = index;
    this.place(line, index, active);
    this.drawTitle(line, task);
    this.drawState(line, task);
    setText(this.priority, task.priority.toLocaleString("en"));
    setText(this.persona, task.persona_id ?? "");
    setText(this.worktree, task.worktree ?? "");
    setText(this.agent, task.assigned_agent_id ?? "");
    this.drawProgress(line, task);
  }

  place(line, index, active) {
    const { element } = this;
    element.style.transform = `translateY(${index * ROW}px)`;
    element.classList.toggle("wb-active", active);
    element.classList.toggle("wb-context", !line.matches);
    setAttribute(element, "aria-rowindex", index + 2);
    setAttribute(element, "aria-level", line.level);
    setAttribute(element, "aria-posinset", line.place);
    setAttribute(element, "aria-setsize", line.siblings);
    setAttribute(element, "aria-expanded", line.branch ? line.open : null);
    setAttribute(element, "aria-selected", active);
  }

  drawTitle(line, task) {
    this.indent.style.width = `${Math.min(line.level - 1, 12) * 16}px`;
    this.twisty.classList.toggle("wb-leaf", !line.branch);
    this.twisty.classList.toggle("wb-turned", line.open);
    setText(this.title, task.title);
    setAttribute(this.title, "title", task.title);
    setText(this.number, `#${line.id}`);
  }

  drawState(line, task) {
    if (this.state !== line.state) {
      this.state = line.state;
      this.mark.replaceChildren(icon(line.state));
    }
    setText(this.label, stateText(line.state, task));
    const why = line.waits.length ? waitingText(line.waits) : reasonOf(task);
    const reason = [dueText(task), why].filter(Boolean).join(" · ");
    setText(this.reason, reason);
    setAttribute(this.reason, "title", reason || null);
  }

  drawProgress(line, task) {
    const share = line.branch ? (line.below ? line.done / line.below : 0) : task.progress / 100;
    const percent = task.status === "completed" && !line.branch ? 100 : Math.round(share * 100);
    const started = line.branch || percent > 0 || task.status === "in_progress" || task.status === "claimed";
    this.bar.classList.toggle("wb-not-begun", !started);
    this.bar.classList.toggle("wb-given-up", task.status === "failed" || task.status === "cancelled");
    this.fill.style.width = `${percent}%`;
    const text = line.branch ? `${line.done} of ${line.below}` : started ? `${percent} %` : "";
    setText(this.amount, text);
  }
}

/** Why a task is in its state, or which attempt it is. */
function reasonOf({ status, error_message: error, attempt, not_before: pause }) {
  if (status === "failed" || status === "cancelled") return error?.split("\n", 1)[0] ?? "";
  const again = status === "pending" ? attempt + 1 : attempt;
  if (pause && status === "pending" && Date.parse(pause) > Date.now())
    return `attempt ${again} after ${timeOfDay(pause)}`;
  return again > 1 && attempt > 0 ? `attempt ${again}` : "";
}

function headRow(sorting) {
  const attributes = (key) => ({ class: `wb-cell wb-col-${key}`, role: "columnheader" });
  const names = Object.keys(COLUMNS).map((key) => sorting.heading(key, "div", attributes(key)));
  return h("div", { class: "wb-grid-columns", role: "row", "aria-rowindex": 1 }, ...names);
}

function cell(name, ...children) {
  return h("div", { class: `wb-cell wb-col-${name}`, role: "gridcell" }, ...children);
}

/** Tasks as a tree: their states, what is completed below each, and the lines to show. Pure. */

import { OPEN } from "./actions.js";

/**
 * @typedef {import("../link/store.js").Row} Row
 * @typedef {{id: number, level: number, place: number, siblings: number, branch: boolean, open: boolean,
 *   matches: boolean, state: string, waits: Row[], done: number, below: number}} Line `done` of the `below` tasks under
 *   it are completed; `matches` is false for a line that only leads to a match
 */

/** Labels by state, in the order in which a person looks for them. */
export const STATES = {
  in_progress: "In progress",
  claimed: "Claimed",
  pending: "Pending",
  blocked: "Blocked",
  failed: "Failed",
  completed: "Completed",
  cancelled: "Cancelled",
};

/** What tells that a completed task is done, if that is more or less than its agent's word. */
const TOLD = new Set(["checked", "flaky", "unchanged"]);

/** "Completed, checked" @param {string} state @param {Row|undefined} task */
export function stateText(state, task) {
  const label = STATES[state] ?? state;
  return state === "completed" && TOLD.has(task?.evidence) ? `${label}, ${task.evidence}` : label;
}

const NOTHING = Object.freeze([]);

/** What tasks can be filtered by, besides state and text. */
export const FACETS = ["persona_id", "plan", "worktree", "assigned_agent_id", "session_id"];

/** @typedef {{text: string, state: string|null} & Record<string, string|null>} Filter by `FACETS` too; null matches all, "" those without a value */

/** The filter that matches every task. @returns {Filter} */
export function everything() {
  return { text: "", state: null, ...Object.fromEntries(FACETS.map((facet) => [facet, null])) };
}

/** The tasks that a blocked one waits for. @param {Row} task @param {Map<number, Row>} tasks */
function waitsFor(task, tasks) {
  if (!task.blocked) return [];
  return task.dependencies.map((id) => tasks.get(id)).filter((other) => other && other.status !== "completed");
}

/** "waits for #3, #5 (failed)" @param {Row[]} waits */
export function waitingText(waits) {
  const names = waits.slice(0, 3).map(({ id, status }) => {
    const hopeless = status === "failed" || status === "cancelled";
    return hopeless ? `#${id} (${status})` : `#${id}`;
  });
  return `waits for ${names.join(", ")}${waits.length > 3 ? ` and ${waits.length - 3} more` : ""}`;
}

/** The day by which an open task is due. @param {Row} task */
export function dueText({ status, due, overdue }) {
  if (!due || !OPEN.has(status)) return "";
  return overdue ? `overdue: ${due}` : `due ${due}`;
}

/** All tasks, with their children in order, states, counts, and what is completed below each. */
export class Outline {
  /** @param {Map<number, Row>} tasks */
  constructor(tasks) {
    this.tasks = tasks;
    /** @type {Map<number|null, number[]>} */
    this.children = new Map();
    this.states = new Map();
    this.waits = new Map();
    this.counts = Object.fromEntries(Object.keys(STATES).map((state) => [state, 0]));
    /** The values that occur. @type {Record<string, Set<string>>} */
    this.facets = Object.fromEntries(FACETS.map((facet) => [facet, new Set()]));
    for (const id of [...tasks.keys()].sort((a, b) => a - b)) this.add(tasks.get(id));
    this.below = this.rollUp();
  }

  /** How many tasks count: all but the cancelled ones. */
  get total() {
    return this.tasks.size - this.counts.cancelled;
  }

  /**
   * The lines of the tree, parents first. With a filter: those that match and those that lead to them, all expanded.
   * @param {Filter} filter
   * @param {Set<number>} collapsed tasks that are collapsed
   * @param {(ids: number[]) => number[]} [sort] orders the tasks that have the same parent
   * @returns {Line[]}
   */
  tree(filter, collapsed, sort = (ids) => ids) {
    const leading = isFilter(filter) ? this.leadingTo(this.matching(filter)) : null;
    const lines = [];
    const visit = (parent, level) => {
      const ids = sort((this.children.get(parent) ?? []).filter((id) => !leading || leading.has(id)));
      ids.forEach((id, index) => {
        const branch = this.children.has(id);
        const open = branch && (leading !== null || !collapsed.has(id));
        const matches = !leading || leading.get(id) === true;
        lines.push(this.line(id, { level, place: index + 1, siblings: ids.length, branch, open, matches }));
        if (open) visit(id, level + 1);
      });
    };
    visit(null, 1);
    return lines;
  }

  /**
   * The lines without the tree, the highest priority first.
   * @param {Filter} filter @param {(ids: number[]) => number[]} [sort] another order @returns {Line[]}
   */
  list(filter, sort = (ids) => ids) {
    const { tasks } = this;
    const ids = sort(this.matching(filter).sort((a, b) => tasks.get(b).priority - tasks.get(a).priority || a - b));
    const siblings = ids.length;
    const leaf = { level: 1, siblings, branch: false, open: false, matches: true };
    return ids.map((id, index) => this.line(id, { ...leaf, place: index + 1 }));
  }

  /** A line of a task, and where it stands. Its fields are written out: so it takes a tenth of the time. */
  line(id, { level, place, siblings, branch, open, matches }) {
    const { done, below } = this.below.get(id);
    const state = this.states.get(id);
    const waits = this.waits.get(id) ?? NOTHING;
    return { id, level, place, siblings, branch, open, matches, state, waits, done, below };
  }

  add(task) {
    const parent = this.tasks.has(task.parent_task_id) ? task.parent_task_id : null;
    push(this.children, parent, task.id);
    const waits = waitsFor(task, this.tasks);
    const state = task.blocked ? "blocked" : task.status;
    if (waits.length) this.waits.set(task.id, waits);
    this.states.set(task.id, state);
    this.counts[state] = (this.counts[state] ?? 0) + 1;
    for (const facet of FACETS) this.facets[facet].add(task[facet] ?? "");
  }

  /** What a task is sorted by. @param {number} id @param {string} column @returns {string|number|null|undefined} */
  valueOf(id, column) {
    const task = this.tasks.get(id);
    const { done, below } = this.below.get(id) ?? {};
    const values = {
      task: task.title,
      state: Object.keys(STATES).indexOf(this.states.get(id)),
      priority: task.priority,
      persona: task.persona_id,
      worktree: task.worktree,
      agent: task.assigned_agent_id,
      progress: below ? (100 * done) / below : task.progress,
    };
    return values[column];
  }

  /** The tasks that depend on one. @param {number} id @returns {number[]} */
  dependents(id) {
    if (!this.after) {
      this.after = new Map();
      for (const task of this.tasks.values()) for (const on of task.dependencies) push(this.after, on, task.id);
    }
    return this.after.get(id) ?? [];
  }

  /** How many tasks are below each, and how many of them are completed; cancelled ones do not count. */
  rollUp() {
    const below = new Map();
    for (const id of this.tasks.keys()) below.set(id, { done: 0, below: 0 });
    for (const id of this.childrenFirst()) {
      const parent = below.get(this.tasks.get(id).parent_task_id);
      if (!parent) continue;
      const own = below.get(id);
      const { status } = this.tasks.get(id);
      parent.done += own.done + (status === "completed" ? 1 : 0);
      parent.below += own.below + (status === "cancelled" ? 0 : 1);
    }
    return below;
  }

  childrenFirst() {
    const order = [];
    const waiting = [...(this.children.get(null) ?? [])];
    while (waiting.length) {
      const id = waiting.pop();
      order.push(id);
      waiting.push(...(this.children.get(id) ?? []));
    }
    return order.reverse();
  }

  /** The ids of the tasks that match. @param {Filter} filter @returns {number[]} */
  matching(filter) {
    const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
    const facets = FACETS.filter((facet) => filter[facet] !== null);
    return [...this.tasks.values()]
      .filter((task) => !filter.state || this.states.get(task.id) === filter.state)
      .filter((task) => facets.every((facet) => (task[facet] ?? "") === filter[facet]))
      .filter((task) => !words.length || words.every((word) => searchText(task).includes(word)))
      .map(({ id }) => id);
  }

  /** These tasks (true), and their ancestors (false). */
  leadingTo(ids) {
    const kept = new Map(ids.map((id) => [id, true]));
    for (const id of ids) {
      let parent = this.tasks.get(id).parent_task_id;
      while (this.tasks.has(parent) && !kept.has(parent)) {
        kept.set(parent, false);
        parent = this.tasks.get(parent).parent_task_id;
      }
    }
    return kept;
  }
}

function push(lists, key, value) {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** @param {Filter} filter */
function isFilter(filter) {
  return Boolean(filter.text || filter.state) || FACETS.some((facet) => filter[facet] !== null);
}

function searchText(task) {
  const { id, title, persona_id, worktree, assigned_agent_id, plan, name } = task;
  return [`#${id}`, title, persona_id, worktree, assigned_agent_id, plan, name].join("\n").toLowerCase();
}

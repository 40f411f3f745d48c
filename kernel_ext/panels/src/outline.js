/** From task rows to what the tree shows: states, roll-ups, the visible lines. Pure. */

/**
 * @typedef {import("./store.js").Row} Row
 * @typedef {{id: number, level: number, place: number, siblings: number, branch: boolean, open: boolean,
 *   matches: boolean, state: string, waits: Row[], done: number, below: number}} Line
 */

/** States in the order a person asks for them, with the word for each. */
export const STATES = {
  in_progress: "In progress",
  claimed: "Claimed",
  pending: "Pending",
  blocked: "Blocked",
  failed: "Failed",
  completed: "Completed",
  cancelled: "Cancelled",
};

/** The unfinished tasks that a pending one waits for. @param {Row} task @param {Map<number, Row>} tasks */
export function waitsFor(task, tasks) {
  if (task.status !== "pending") return [];
  return task.dependencies.map((id) => tasks.get(id)).filter((other) => other && other.status !== "completed");
}

/** "waits for 3, 5 (failed)" @param {Row[]} waits */
export function waitingText(waits) {
  const named = waits.slice(0, 3).map(({ id, status }) => {
    const hopeless = status === "failed" || status === "cancelled";
    return hopeless ? `${id} (${status})` : `${id}`;
  });
  return `waits for ${named.join(", ")}${waits.length > 3 ? ` and ${waits.length - 3} more` : ""}`;
}

/** What is known of all tasks: children in order, derived states, roll-ups and counts. */
export class Outline {
  /** @param {Map<number, Row>} tasks */
  constructor(tasks) {
    this.tasks = tasks;
    /** @type {Map<number|null, number[]>} */
    this.children = new Map();
    this.states = new Map();
    this.waits = new Map();
    this.counts = Object.fromEntries(Object.keys(STATES).map((state) => [state, 0]));
    for (const id of [...tasks.keys()].sort((a, b) => a - b)) this.add(tasks.get(id));
    this.below = this.rollUp();
  }

  /** Tasks that count as work: all but the cancelled ones. */
  get total() {
    return this.tasks.size - this.counts.cancelled;
  }

  /**
   * The lines to show.
   * @param {{closed: Set<number>, text: string, state: string|null}} view
   * @returns {Line[]} parents first; with a filter, matching lines and what leads to them, opened
   */
  lines({ closed, text, state }) {
    const filtered = Boolean(text || state);
    const wanted = filtered ? this.matching(text, state) : null;
    const lines = [];
    const visit = (parent, level) => {
      const ids = (this.children.get(parent) ?? []).filter((id) => !wanted || wanted.has(id));
      ids.forEach((id, index) => {
        const branch = this.children.has(id);
        const open = branch && (filtered || !closed.has(id));
        lines.push({
          id,
          level,
          place: index + 1,
          siblings: ids.length,
          branch,
          open,
          matches: !wanted || wanted.get(id) === true,
          state: this.states.get(id),
          waits: this.waits.get(id) ?? [],
          ...this.below.get(id),
        });
        if (open) visit(id, level + 1);
      });
    };
    visit(null, 1);
    return lines;
  }

  add(task) {
    const parent = this.tasks.has(task.parent_task_id) ? task.parent_task_id : null;
    const siblings = this.children.get(parent);
    if (siblings) siblings.push(task.id);
    else this.children.set(parent, [task.id]);
    const waits = waitsFor(task, this.tasks);
    const state = waits.length ? "blocked" : task.status;
    if (waits.length) this.waits.set(task.id, waits);
    this.states.set(task.id, state);
    this.counts[state] = (this.counts[state] ?? 0) + 1;
  }

  /** How many tasks lie under each, and how many of those are completed; cancelled ones do not count. */
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

  /** Matching tasks (true) and their ancestors (false). */
  matching(text, state) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = new Map();
    for (const [id, task] of this.tasks) {
      if (state && this.states.get(id) !== state) continue;
      if (!words.every((word) => haystack(task).includes(word))) continue;
      found.set(id, true);
      let parent = task.parent_task_id;
      while (this.tasks.has(parent) && !found.has(parent)) {
        found.set(parent, false);
        parent = this.tasks.get(parent).parent_task_id;
      }
    }
    return found;
  }
}

function haystack(task) {
  const { id, title, persona_id, worktree, assigned_agent_id, plan, name } = task;
  return [`#${id}`, title, persona_id, worktree, assigned_agent_id, plan, name].join("\n").toLowerCase();
}

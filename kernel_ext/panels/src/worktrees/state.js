/** How a worktree stands, in one word, and what is known of it. Pure. */

import { isCurrent, standing } from "../agents/standing.js";
import { questionAbout, verdict } from "../integration/state.js";
import { counted, nth, some } from "../lib/format.js";

/** Words by key, those that need the person first. */
export const STATES = {
  awaiting: "Awaits approval",
  failing: "Gates failed",
  checking: "Gates running",
  queued: "Queued",
  integrating: "Integrating",
  active: "Active",
  closed: "Closed",
};

/** States in which the person is to decide. */
export const YOURS = new Set(["awaiting", "failing", "checking"]);
const OPEN_TASKS = new Set(["pending", "claimed", "in_progress"]);
const WORKING = new Set(["claimed", "in_progress"]);

/** @param {any} worktree @param {import("../link/store.js").Tables} tables @returns {keyof typeof STATES} */
export function stateOf(worktree, tables) {
  if (worktree.status === "integrating") return worktree.queue_place ? "queued" : "integrating";
  if (worktree.status !== "active") return "closed";
  const question = questionAbout(worktree, tables);
  if (!question) return "active";
  const said = verdict(question.payload.gates ?? []);
  return said === "passed" ? "awaiting" : said;
}

/** "Queued, 2nd" @param {any} worktree @param {keyof typeof STATES} state */
export function stateWords(worktree, state) {
  return state === "queued" ? `Queued, ${nth(worktree.queue_place)}` : STATES[state];
}

/** Who works in each worktree and how many tasks are open there. @param {import("../link/store.js").Tables} tables @param {number} now */
export function occupation(tables, now) {
  const found = new Map();
  const of = (name) => found.get(name) ?? found.set(name, { agents: new Set(), tasks: 0 }).get(name);
  for (const agent of tables.agents.values()) {
    const state = standing(agent, now);
    if (agent.worktree && isCurrent(state) && state !== "terminated") of(agent.worktree).agents.add(agent.id);
  }
  for (const task of tables.tasks.values()) {
    if (!task.worktree || !OPEN_TASKS.has(task.status)) continue;
    of(task.worktree).tasks += 1;
    if (WORKING.has(task.status) && task.assigned_agent_id) of(task.worktree).agents.add(task.assigned_agent_id);
  }
  return (name) => found.get(name) ?? { agents: new Set(), tasks: 0 };
}

/** What is wrong with it, in sentences. @param {any} worktree @returns {string[]} */
export function troublesOf(worktree) {
  const clashes = conflictsOf(worktree).map(([other, files]) => `Conflicts with ${other} in ${some(files, 4)}`);
  return worktree.problem ? [worktree.problem, ...clashes] : clashes;
}

/** What would conflict: `[["main", 2], ["bills", 1]]`, the target first. @param {any} worktree */
export function conflictsOf(worktree) {
  const target = worktree.conflicts?.length ? [[worktree.integration_target, worktree.conflicts]] : [];
  return [...target, ...(worktree.overlaps ?? []).map(({ worktree: other, files }) => [other, files])];
}

/** What is gone for good, what stays, when a worktree is discarded. @param {any} worktree @param {string[]} agents @param {boolean} andBranch @returns {string[]} */
export function lossOf(worktree, agents, andBranch) {
  const { uncommitted = 0, dirty = [], ahead = 0, branch_name: branch, integration_target: target } = worktree;
  const commits = ahead ? `${counted(ahead, "commit")} that ${target} does not have` : "";
  return [
    uncommitted
      ? `${counted(uncommitted, "uncommitted file")}: ${some(dirty, 5, uncommitted)}. ${uncommitted === 1 ? "It is" : "They are"} written to a bundle in .aiswarm/trash/ first.`
      : "Nothing there is uncommitted.",
    andBranch
      ? `The branch ${branch} is deleted${commits ? `, with ${commits}. What is on no other branch is written to a bundle in .aiswarm/trash/ first.` : `; ${target} has every commit of it.`}`
      : `The branch ${branch} stays${commits ? `, with its ${commits}` : ""}.`,
    agents.length ? `${some(agents, 3)} ${agents.length === 1 ? "is" : "are"} ended.` : "",
  ].filter(Boolean);
}

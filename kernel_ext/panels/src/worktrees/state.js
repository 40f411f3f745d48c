/** The state of a worktree, what is wrong with it, and what discarding it would do. Pure. */

import { agentState, isAdmitted } from "../agents/state.js";
import { gatesState, pendingApproval } from "../integration/state.js";
import { ordinal, plural, shortList } from "../lib/format.js";

/** @typedef {import("../link/store.js").Tables} Tables */

/** Labels by state, those that wait for the person first. */
export const STATES = {
  awaiting: "Awaits approval",
  failing: "Gates failed",
  checking: "Gates running",
  queued: "Queued",
  integrating: "Integrating",
  active: "Active",
  closed: "Closed",
};

/** States in which an approval is pending. */
export const PENDING = new Set(["awaiting", "failing", "checking"]);
const OPEN_TASKS = new Set(["pending", "claimed", "in_progress"]);
const WORKING = new Set(["claimed", "in_progress"]);

/** @param {any} worktree @param {Tables} tables @returns {keyof typeof STATES} */
export function worktreeState(worktree, tables) {
  if (worktree.status === "integrating") return worktree.queue_place > 1 ? "queued" : "integrating";
  if (worktree.status !== "active") return "closed";
  const approval = pendingApproval(worktree, tables);
  if (!approval) return "active";
  const gates = gatesState(approval.payload.gates ?? []);
  return gates === "passed" ? "awaiting" : gates;
}

/** "Queued, 2nd" @param {any} worktree @param {keyof typeof STATES} state */
export function stateLabel(worktree, state) {
  return state === "queued" ? `Queued, ${ordinal(worktree.queue_place)}` : STATES[state];
}

/**
 * Who works in each worktree, and how many open tasks it has.
 * @param {Tables} tables @param {number} now in ms
 * @returns {(name: string) => {agents: Set<string>, tasks: number}}
 */
export function occupancy(tables, now) {
  const occupants = new Map();
  const of = (name) => occupants.get(name) ?? occupants.set(name, { agents: new Set(), tasks: 0 }).get(name);
  for (const agent of tables.agents.values()) {
    const state = agentState(agent, now);
    if (agent.worktree && isAdmitted(state) && state !== "terminated") of(agent.worktree).agents.add(agent.id);
  }
  for (const task of tables.tasks.values()) {
    if (!task.worktree || !OPEN_TASKS.has(task.status)) continue;
    of(task.worktree).tasks += 1;
    if (WORKING.has(task.status) && task.assigned_agent_id) of(task.worktree).agents.add(task.assigned_agent_id);
  }
  return (name) => occupants.get(name) ?? { agents: new Set(), tasks: 0 };
}

/** Predicted conflicts: `[["main", files], ["bills", files]]`, the target first. @param {any} worktree */
export function conflictsOf(worktree) {
  const target = worktree.conflicts?.length ? [[worktree.integration_target, worktree.conflicts]] : [];
  return [...target, ...(worktree.overlaps ?? []).map(({ worktree: other, files }) => [other, files])];
}

/** What is wrong with a worktree, in sentences. @param {any} worktree @returns {string[]} */
export function problemsOf(worktree) {
  const byFiles = new Map();
  for (const [other, files] of conflictsOf(worktree)) {
    const key = files.join("\n");
    byFiles.set(key, { files, others: [...(byFiles.get(key)?.others ?? []), other] });
  }
  const sentence = ({ files, others }) => `Conflicts with ${shortList(others, 6)} in ${shortList(files, 4)}`;
  const conflicts = [...byFiles.values()].map(sentence);
  return worktree.problem ? [worktree.problem, ...conflicts] : conflicts;
}

/**
 * What is lost and what is kept when a worktree is discarded, in sentences.
 * @param {any} worktree @param {string[]} agents who work there @param {boolean} deleteBranch
 */
export function discardConsequences(worktree, agents, deleteBranch) {
  const { uncommitted = 0, dirty = [], ahead = 0, branch_name: branch, integration_target: target } = worktree;
  const commits = ahead ? `${plural(ahead, "commit")} that ${target} does not have` : "";
  const are = uncommitted === 1 ? "It is" : "They are";
  const files = `${plural(uncommitted, "uncommitted file")}: ${shortList(dirty, 5, uncommitted)}`;
  const deleted = commits
    ? `The branch ${branch} is deleted, with ${commits}. Commits that are on no other branch are first saved to a bundle in .aiswarm/trash/.`
    : `The branch ${branch} is deleted; ${target} has all its commits.`;
  return [
    uncommitted ? `${files}. ${are} first saved to a bundle in .aiswarm/trash/.` : "It has no uncommitted files.",
    deleteBranch ? deleted : `The branch ${branch} is kept${commits ? `, with its ${commits}` : ""}.`,
    agents.length ? `${shortList(agents)} ${agents.length === 1 ? "is" : "are"} terminated.` : "",
  ].filter(Boolean);
}

/** The state of an integration: its gates, its place in the queue, its end. Pure. */

import { ordinal } from "../lib/format.js";

/** @typedef {import("../link/store.js").Tables} Tables */

const UNFINISHED = new Set(["waiting", "running"]);

/** What the gates say together. @param {any[]} gates @returns {"checking"|"failing"|"passed"} */
export function gatesState(gates) {
  if (gates.some(({ state }) => UNFINISHED.has(state))) return "checking";
  return gates.some(({ state }) => state !== "passed") ? "failing" : "passed";
}

/** The pending approval about a worktree, if there is one. @param {any} worktree @param {Tables} tables */
export function pendingApproval(worktree, tables) {
  const isAbout = ({ kind, payload }) => kind === "integration" && payload.worktree === worktree.id;
  return tables.approvals.get(worktree.approval_id) ?? [...tables.approvals.values()].find(isAbout) ?? null;
}

/** Whether the branch has moved since its integration was requested. @param {any} worktree @param {any} approval */
export function branchMoved(worktree, approval) {
  return Boolean(worktree?.commit && approval && worktree.commit !== approval.payload.source_commit);
}

/**
 * How far an approved integration is: in the queue, checked by gates, being merged, merged, or sent back.
 * @param {any} approval @param {any} worktree its row, if it is still there
 * @returns {{text: string, done: boolean, error: {code: string, message: string}|null}}
 */
export function integrationProgress({ status, reason, outcome, payload }, worktree) {
  const { target } = payload;
  if (status === "failed") {
    const code = outcome?.code ?? "INTEGRATION_REFUSED";
    return { text: "Sent back.", done: true, error: { code, message: reason ?? "It was not merged." } };
  }
  const under = (text) => ({ text, done: false, error: null });
  if (outcome?.state === "integrated") return { text: `Integrated into ${target}.`, done: true, error: null };
  const place = worktree?.queue_place ?? 0;
  if (place > 1) return under(`Approved. Queued, ${ordinal(place)} for ${target}.`);
  const gates = gatesState(payload.gates ?? []);
  if (gates === "checking") return under(`Approved. Running gates; then it is merged into ${target}.`);
  return under(place === 1 ? `Approved. Merging into ${target}…` : `Approved. Queued for ${target}.`);
}

/** How an integration stands. Pure. */

/** Gates that have not ended. */
const UNENDED = new Set(["waiting", "running"]);

/** What the gates of an integration say together: "checking", "failing" or "passed". @param {any[]} gates */
export function verdict(gates) {
  if (gates.some(({ state }) => UNENDED.has(state))) return "checking";
  return gates.some(({ state }) => state !== "passed") ? "failing" : "passed";
}

/** The open question about a worktree, if there is one. @param {any} worktree @param {import("../link/store.js").Tables} tables */
export function questionAbout(worktree, tables) {
  return (
    tables.approvals.get(worktree.approval_id) ??
    [...tables.approvals.values()].find(
      ({ kind, payload }) => kind === "integration" && payload.worktree === worktree.id,
    ) ??
    null
  );
}

/** Whether the branch has moved since its integration was asked for. @param {any} worktree @param {any} question */
export function hasMoved(worktree, question) {
  return Boolean(worktree?.commit && question && worktree.commit !== question.payload.source_commit);
}

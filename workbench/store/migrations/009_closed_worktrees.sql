-- Every worktree that was integrated or discarded: its name, and so its row in worktrees, can be used again.

CREATE TABLE closed_worktrees (
    id {{id}},
    name TEXT NOT NULL,
    branch_name TEXT NOT NULL,
    integration_target TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('integrated', 'discarded')),
    base_commit TEXT NOT NULL,
    last_commit TEXT,
    integrated_commit TEXT,
    -- The integration that closed it, or that was pending when it was discarded.
    approval_id {{big}} REFERENCES approvals (id),
    reason TEXT NOT NULL,
    branch_kept {{big}} NOT NULL,
    bundle TEXT,
    created_by TEXT NOT NULL,
    created_at {{big}} NOT NULL,
    closed_by TEXT NOT NULL,
    closed_at {{big}} NOT NULL
) {{strict}};
CREATE INDEX closed_worktrees_by_name ON closed_worktrees (name, id);
CREATE INDEX closed_worktrees_by_branch ON closed_worktrees (branch_name, id);

INSERT INTO closed_worktrees (name, branch_name, integration_target, status, base_commit, last_commit,
    integrated_commit, approval_id, reason, branch_kept, bundle, created_by, created_at, closed_by, closed_at)
SELECT w.name, w.branch_name, w.integration_target, w.status, w.base_commit, w.imported_commit, w.integrated_commit,
    a.id, COALESCE(a.reason, ''), 1, NULL, w.created_by, w.created_at, COALESCE(a.decided_by, 'operator'),
    COALESCE(w.closed_at, w.created_at)
FROM worktrees w
LEFT JOIN approvals a ON a.id = (
    SELECT MAX(b.id) FROM approvals b WHERE b.subject = 'worktree:' || w.name AND b.kind = 'integration'
)
WHERE w.status IN ('integrated', 'discarded')
ORDER BY w.closed_at, w.name;

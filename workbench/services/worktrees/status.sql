-- name: agents
SELECT assigned_worktree AS worktree, assigned_agent_id FROM agents
WHERE CAST(:names AS TEXT) <> '[]' AND assigned_worktree IN (SELECT n.value FROM {{rows_of names}} AS n)
  AND registration_status IN ('pending', 'assigned', 'active', 'inactive')
ORDER BY registered_at;

-- name: work
SELECT worktree,
    SUM(CASE WHEN status IN ('pending', 'claimed', 'in_progress') THEN 1 ELSE 0 END) AS open_tasks,
    SUM(CASE WHEN status IN ('claimed', 'in_progress') THEN 1 ELSE 0 END) AS running,
    MAX(claimed_at) AS claimed_at, MAX(started_at) AS started_at, MAX(completed_at) AS completed_at
FROM task_status
WHERE CAST(:names AS TEXT) <> '[]' AND worktree IN (SELECT n.value FROM {{rows_of names}} AS n) GROUP BY worktree;

-- name: questions
SELECT approval_id, worktree, state FROM integrations
ORDER BY CASE WHEN state = 'asked' THEN 1 ELSE 0 END, queued_at, approval_id;

-- name: decisions
SELECT w.name, a.* FROM worktrees w JOIN approvals a ON a.id = (
    SELECT MAX(b.id) FROM approvals b WHERE b.kind = 'integration' AND b.subject = 'worktree:' || w.name
)
WHERE CAST(:names AS TEXT) <> '[]' AND w.name IN (SELECT n.value FROM {{rows_of names}} AS n);

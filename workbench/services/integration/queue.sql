-- name: enqueue
UPDATE integrations SET state = 'queued', despite_gates = :despite, queued_at = :now WHERE approval_id = :id;

-- name: queue
-- Each machine merges its own worktrees.
SELECT i.approval_id FROM integrations i JOIN worktrees w ON w.name = i.worktree
WHERE i.state = 'queued' AND (CAST(:machine AS TEXT) IS NULL OR w.machine = :machine)
ORDER BY i.queued_at, i.approval_id;

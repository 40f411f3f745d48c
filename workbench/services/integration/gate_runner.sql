-- name: unchecked
SELECT i.approval_id FROM integrations i JOIN worktrees w ON w.name = i.worktree
WHERE i.state = 'asked' AND i.checked = 0 AND (CAST(:machine AS TEXT) IS NULL OR w.machine = :machine)
ORDER BY i.approval_id;

-- name: cut_off
SELECT w.name, i.approval_id FROM worktrees w LEFT JOIN integrations i ON i.worktree = w.name
WHERE w.status = 'integrating' AND (CAST(:machine AS TEXT) IS NULL OR w.machine = :machine) AND (i.state IS NULL OR i.state <> 'queued') ORDER BY w.created_at, w.name;

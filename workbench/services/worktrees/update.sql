-- name: running
SELECT task_id FROM task_status
WHERE worktree = :name AND status IN ('claimed', 'in_progress') ORDER BY task_id;

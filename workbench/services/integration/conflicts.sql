-- name: open_tasks
SELECT task_id FROM task_status
WHERE worktree <> '' AND worktree = :name AND status IN ('pending', 'claimed', 'in_progress')
ORDER BY task_id;

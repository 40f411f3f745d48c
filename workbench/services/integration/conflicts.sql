-- name: tasks
SELECT task_id, status FROM task_status WHERE worktree <> '' AND worktree = :name ORDER BY task_id;

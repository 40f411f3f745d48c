-- name: revive
UPDATE task_status SET status = 'pending', retry_count = 0, progress = 0, completed_at = NULL, not_before = NULL,
    assigned_agent_id = NULL, lease_expires_at = NULL, error_message = NULL
WHERE task_id = :task_id;

-- name: set_retries
UPDATE tasks SET max_retries = :max_retries WHERE id = :task_id;

-- name: prioritise
UPDATE task_status SET priority = :priority WHERE task_id = :task_id;

-- name: closed_worktree
SELECT branch_name, status FROM worktrees WHERE name = :name AND status IN ('integrated', 'discarded');

-- name: reservation
SELECT a.assigned_agent_id AS agent_id FROM task_status s JOIN agents a ON a.id = s.reserved_for
WHERE s.task_id = :task_id;

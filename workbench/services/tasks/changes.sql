-- name: revive
UPDATE task_status SET status = 'pending', retry_count = 0, progress = 0, completed_at = NULL, not_before = NULL,
    assigned_agent_id = NULL, lease_expires_at = NULL, error_message = NULL, evidence = NULL,
    approval_id = CASE WHEN EXISTS (SELECT 1 FROM approvals a WHERE a.id = approval_id AND a.status = 'pending') THEN approval_id END
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

-- name: cancelled_with
-- One change ends a task and cancels what is below it and, as their policy says, what comes after any of these: all have
-- the time of that change.
WITH RECURSIVE ended (id) AS (
    SELECT CAST(:task_id AS {{big}})
    UNION
    SELECT s.task_id FROM ended e
    CROSS JOIN (SELECT 0 AS after UNION ALL SELECT 1 AS after) k
    LEFT JOIN tasks t ON k.after = 0 AND t.parent_id = e.id
    LEFT JOIN task_dependencies d ON k.after = 1 AND d.depends_on = e.id
    JOIN task_status s ON s.task_id = COALESCE(t.id, d.task_id)
    WHERE s.status = 'cancelled' AND s.completed_at = CAST(:at AS {{big}})
)
SELECT id FROM ended WHERE id <> :task_id ORDER BY id;

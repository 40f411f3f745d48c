-- name: add
INSERT INTO task_dependencies (task_id, depends_on) VALUES (:task_id, :on) ON CONFLICT DO NOTHING;

-- name: remove
DELETE FROM task_dependencies WHERE task_id = :task_id AND depends_on = :on;

-- name: edges_ahead
-- Nearest first: the order in which the recursion finds them.
WITH RECURSIVE ahead (id) AS (
    SELECT CAST(:start AS {{big}})
    UNION
    SELECT d.depends_on FROM task_dependencies d JOIN ahead a ON d.task_id = a.id
)
SELECT d.task_id, d.depends_on FROM ahead a JOIN task_dependencies d ON d.task_id = a.id;

-- name: dependents
SELECT t.id, t.on_failure, t.session_id, s.status FROM task_dependencies d
JOIN tasks t ON t.id = d.task_id JOIN task_status s ON s.task_id = t.id
WHERE d.depends_on = :task_id ORDER BY t.id;

-- name: one_less
UPDATE task_status SET unmet = unmet - 1
WHERE task_id IN (SELECT task_id FROM task_dependencies WHERE depends_on = :task_id);

-- name: recount
UPDATE task_status SET unmet = (
    SELECT COUNT(*) FROM task_dependencies d
    JOIN task_status s ON s.task_id = d.depends_on
    JOIN tasks t ON t.id = d.task_id
    WHERE d.task_id = :task_id AND s.status <> 'completed'
      AND NOT (t.on_failure = 'ignore' AND s.status IN ('failed', 'cancelled'))
) WHERE task_id = :task_id;

-- name: subtree_open
WITH RECURSIVE below (id) AS (
    SELECT id FROM tasks WHERE id = :task_id
    UNION ALL
    SELECT t.id FROM tasks t JOIN below b ON t.parent_id = b.id
)
SELECT b.id, t.session_id, s.status, s.not_before, s.error_message FROM below b
JOIN task_status s ON s.task_id = b.id JOIN tasks t ON t.id = b.id
WHERE s.status IN ('pending', 'claimed', 'in_progress') ORDER BY b.id;

-- name: cancel
UPDATE task_status SET status = 'cancelled', completed_at = :now, error_message = :reason,
    assigned_agent_id = NULL, lease_expires_at = NULL, not_before = NULL
WHERE task_id = :task_id;

-- name: restore_cancelled
UPDATE task_status SET status = 'pending', completed_at = NULL, not_before = CAST(:not_before AS {{big}}),
    error_message = CAST(:error AS TEXT)
WHERE task_id = :task_id AND status = 'cancelled';

-- name: held_above
WITH RECURSIVE above (id) AS (
    SELECT CAST(:task_id AS {{big}})
    UNION ALL
    SELECT t.parent_id FROM tasks t JOIN above a ON t.id = a.id WHERE t.parent_id IS NOT NULL
)
SELECT 1 AS found FROM above a JOIN task_status s ON s.task_id = a.id
WHERE s.assigned_agent_id = :agent AND s.status IN ('claimed', 'in_progress') LIMIT 1;

-- part: steps
-- From a task of `ahead a` to those it waits for, and to the one above it, whose dependencies hold it back too, but for
-- that one's own subtasks.
CROSS JOIN (SELECT 0 AS above UNION ALL SELECT 1 AS above) k
LEFT JOIN task_dependencies d ON k.above = 0 AND d.task_id = a.id
LEFT JOIN tasks t ON k.above = 1 AND t.id = a.id
WHERE COALESCE(d.depends_on, t.parent_id) IS NOT NULL
  AND (k.above = 1 OR a.above = 0 OR NOT EXISTS (
    WITH RECURSIVE over (id) AS (
        SELECT d.depends_on
        UNION ALL
        SELECT t.parent_id FROM over r JOIN tasks t ON t.id = r.id WHERE t.parent_id IS NOT NULL
    ) SELECT 1 FROM over WHERE over.id = a.id))

-- name: add
INSERT INTO task_dependencies (task_id, depends_on) VALUES (:task_id, :on) ON CONFLICT DO NOTHING;

-- name: remove
DELETE FROM task_dependencies WHERE task_id = :task_id AND depends_on = :on;

-- name: steps_ahead
-- Nearest first: the order in which the recursion finds them.
WITH RECURSIVE ahead (id, above) AS (
    SELECT CAST(:start AS {{big}}), 0
    UNION
    SELECT COALESCE(d.depends_on, t.parent_id), k.above FROM ahead a {{steps}}
)
SELECT a.id, a.above, COALESCE(d.depends_on, t.parent_id), k.above FROM ahead a {{steps}};

-- name: subtree
WITH RECURSIVE below (id) AS (
    SELECT CAST(:task_id AS {{big}})
    UNION ALL
    SELECT t.id FROM below b JOIN tasks t ON t.parent_id = b.id
)
SELECT id FROM below;

-- name: dependents
SELECT t.id, t.on_failure, t.session_id, s.status FROM task_dependencies d
JOIN tasks t ON t.id = d.task_id JOIN task_status s ON s.task_id = t.id
WHERE d.depends_on = :task_id ORDER BY t.id;

-- name: one_less
WITH RECURSIVE over (id) AS (
    SELECT parent_id FROM tasks WHERE id = :task_id
    UNION ALL
    SELECT t.parent_id FROM over r JOIN tasks t ON t.id = r.id WHERE t.parent_id IS NOT NULL
), held (id) AS (
    SELECT task_id FROM task_dependencies WHERE depends_on = :task_id
    UNION
    SELECT t.id FROM held h JOIN tasks t ON t.parent_id = h.id JOIN task_status p ON p.task_id = h.id
    WHERE p.status IN ('pending', 'claimed', 'in_progress') AND NOT EXISTS (SELECT 1 FROM over WHERE over.id = h.id)
)
UPDATE task_status SET unmet = unmet - 1 WHERE task_id IN (SELECT id FROM held);

-- name: subtree_open
-- By the states that have ended: PostgreSQL would look through an index of all open tasks for those that are below.
WITH RECURSIVE below (id) AS (
    SELECT id FROM tasks WHERE id = :task_id
    UNION ALL
    SELECT t.id FROM tasks t JOIN below b ON t.parent_id = b.id
)
SELECT b.id, t.session_id, s.status, s.not_before, s.error_message FROM below b
JOIN task_status s ON s.task_id = b.id JOIN tasks t ON t.id = b.id
WHERE s.status NOT IN ('completed', 'failed', 'cancelled') ORDER BY b.id;

-- name: cancel
UPDATE task_status SET status = 'cancelled', completed_at = :now, error_message = :reason,
    assigned_agent_id = NULL, lease_expires_at = NULL, not_before = NULL
WHERE task_id = :task_id;

-- name: restore_cancelled
UPDATE task_status SET status = 'pending', completed_at = NULL, not_before = CAST(:not_before AS {{big}}),
    error_message = CAST(:error AS TEXT),
    approval_id = CASE WHEN EXISTS (SELECT 1 FROM approvals a WHERE a.id = approval_id AND a.status = 'pending') THEN approval_id END
WHERE task_id = :task_id AND status = 'cancelled';

-- name: held_above
WITH RECURSIVE above (id) AS (
    SELECT CAST(:task_id AS {{big}})
    UNION ALL
    SELECT t.parent_id FROM tasks t JOIN above a ON t.id = a.id WHERE t.parent_id IS NOT NULL
)
SELECT 1 AS found FROM above a JOIN task_status s ON s.task_id = a.id
WHERE s.assigned_agent_id = :agent AND s.status IN ('claimed', 'in_progress') LIMIT 1;

-- part: line
SELECT t.id, t.title, t.parent_id, t.plan, t.name, t.session_id, t.due,
    COALESCE(t.due, '9999-99-99') AS due_or_last, s.status, s.persona_id, s.worktree, s.priority,
    s.unmet, s.progress, s.attempt, s.retry_count, s.not_before, s.error_message, s.evidence, a.assigned_agent_id AS holder

-- part: lines
{{line}}
FROM task_status s
JOIN tasks t ON t.id = s.task_id
LEFT JOIN agents a ON a.id = s.assigned_agent_id

-- part: visible
(CAST(:everything AS {{big}}) = 1 OR t.session_id IS NULL OR t.session_id = :mine)

-- part: wanted
{{visible}}
  AND (CAST(:status AS TEXT) IS NULL OR s.status = :status)
  AND (CAST(:blocked AS {{big}}) = 0 OR s.unmet > 0)
  AND (CAST(:persona_id AS TEXT) IS NULL OR s.persona_id = :persona_id)
  AND (CAST(:agent AS TEXT) IS NULL OR a.assigned_agent_id = :agent)
  AND (CAST(:session AS TEXT) IS NULL OR t.session_id = :session)
  AND (CAST(:worktree AS TEXT) IS NULL OR s.worktree = :worktree)
  AND (CAST(:parent AS {{big}}) IS NULL OR t.parent_id = :parent)
  AND (CAST(:plan AS TEXT) IS NULL OR t.plan = :plan)
  AND (CAST(:search AS TEXT) IS NULL OR LOWER(t.title) LIKE LOWER(:search) ESCAPE '!'
       OR LOWER(t.description) LIKE LOWER(:search) ESCAPE '!' OR LOWER(t.name) LIKE LOWER(:search) ESCAPE '!')
  AND (CAST(:due AS TEXT) IS NULL OR t.due <= :due AND s.status IN ('pending', 'claimed', 'in_progress'))
  AND (CAST(:since AS {{big}}) IS NULL OR t.created_at > :since OR s.claimed_at > :since
       OR s.started_at > :since OR s.completed_at > :since)

-- part: of_plan
{{visible}}
  AND (CAST(:plan AS TEXT) IS NULL OR t.plan = :plan)

-- name: list
{{lines}}
WHERE s.task_id > :after_id
  AND {{wanted}}
ORDER BY s.task_id LIMIT :limit;

-- name: list_newest
{{lines}}
WHERE s.task_id < :after_id
  AND {{wanted}}
ORDER BY s.task_id DESC LIMIT :limit;

-- name: list_urgent
{{lines}}
WHERE (s.priority < :after_priority OR (s.priority = :after_priority AND s.task_id > :after_id))
  AND {{wanted}}
ORDER BY s.priority DESC, s.task_id LIMIT :limit;

-- name: list_due
-- Those without a day come last.
{{lines}}
WHERE (COALESCE(t.due, '9999-99-99') > CAST(:after_due_or_last AS TEXT)
       OR (COALESCE(t.due, '9999-99-99') = CAST(:after_due_or_last AS TEXT) AND s.task_id > :after_id))
  AND {{wanted}}
ORDER BY due_or_last, s.task_id LIMIT :limit;

-- name: counts
SELECT status, COUNT(*) AS n, SUM(CASE WHEN status = 'pending' AND unmet > 0 THEN 1 ELSE 0 END) AS blocked FROM task_status
WHERE CAST(:everything AS {{big}}) = 1 OR session_id = '' OR session_id = :mine
GROUP BY status ORDER BY status;

-- name: stuck
-- Pending tasks that wait, themselves or by way of others, for one that has ended without success: `via` is the
-- dependency. A task that waits for one of its own subtasks does not hold back the others.
WITH RECURSIVE stuck (id, is_dead, via) AS (
    SELECT task_id, 1, task_id FROM task_status WHERE status IN ('failed', 'cancelled')
    UNION
    SELECT s.task_id, 0, CASE WHEN k.below = 1 THEN x.via ELSE x.id END
    FROM stuck x
    CROSS JOIN (SELECT 0 AS below UNION ALL SELECT 1 AS below) k
    LEFT JOIN task_dependencies d ON k.below = 0 AND d.depends_on = x.id
    LEFT JOIN tasks c ON k.below = 1 AND x.is_dead = 0 AND c.parent_id = x.id
    JOIN task_status s ON s.task_id = COALESCE(d.task_id, c.id)
    JOIN tasks t ON t.id = s.task_id
    WHERE s.status = 'pending' AND s.unmet > 0
      AND (k.below = 1 OR x.is_dead = 0 OR t.on_failure <> 'ignore')
      AND (k.below = 0 OR NOT EXISTS (
        WITH RECURSIVE over (id) AS (
            SELECT x.via
            UNION ALL
            SELECT t.parent_id FROM over r JOIN tasks t ON t.id = r.id WHERE t.parent_id IS NOT NULL
        ) SELECT 1 FROM over WHERE over.id = x.id))
)
SELECT COUNT(DISTINCT x.id) AS n FROM stuck x JOIN tasks t ON t.id = x.id
WHERE x.is_dead = 0 AND {{visible}};

-- name: plan
SELECT 1 AS found FROM plans WHERE name = :name;

-- name: agent
SELECT 1 AS found FROM agents WHERE assigned_agent_id = :name;

-- name: session
SELECT 1 AS found FROM sessions WHERE id = :id;

-- name: worktree
SELECT 1 AS found FROM worktrees WHERE name = :name
UNION ALL
SELECT 1 AS found FROM task_status WHERE worktree = :name
LIMIT 1;

-- name: tree
{{line}}
FROM tasks t
JOIN task_status s ON s.task_id = t.id
LEFT JOIN agents a ON a.id = s.assigned_agent_id
WHERE {{of_plan}}
ORDER BY t.id;

-- name: edges
SELECT d.task_id, d.depends_on FROM task_dependencies d JOIN tasks t ON t.id = d.task_id
WHERE {{of_plan}}
ORDER BY d.task_id, d.depends_on;

-- name: parents
SELECT t.id, t.parent_id FROM tasks t
WHERE t.parent_id IS NOT NULL
  AND {{of_plan}}
ORDER BY t.id;

-- part: line
SELECT t.id, t.title, t.parent_id, t.plan, t.name, t.session_id, s.status, s.persona_id, s.worktree, s.priority,
    s.unmet, s.progress, s.attempt, s.retry_count, s.not_before, s.error_message, a.assigned_agent_id AS holder

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

-- name: counts
SELECT status, COUNT(*) AS n, SUM(CASE WHEN status = 'pending' AND unmet > 0 THEN 1 ELSE 0 END) AS blocked FROM task_status
WHERE CAST(:everything AS {{big}}) = 1 OR session_id = '' OR session_id = :mine
GROUP BY status ORDER BY status;

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

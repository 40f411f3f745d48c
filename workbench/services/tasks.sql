-- part: line
SELECT t.id, t.title, t.parent_id, t.plan, t.name, t.session_id, s.status, s.persona_id, s.worktree, s.priority,
    s.unmet, s.progress, s.attempt, s.retry_count, s.not_before, s.error_message, a.assigned_agent_id AS holder

-- part: lines
{{line}}
FROM task_status s
JOIN tasks t ON t.id = s.task_id
LEFT JOIN agents a ON a.id = s.assigned_agent_id

-- part: in_sight
(CAST(:everything AS {{big}}) = 1 OR t.session_id IS NULL OR t.session_id = :mine)

-- part: wanted
{{in_sight}}
  AND (CAST(:status AS TEXT) IS NULL OR s.status = :status)
  AND (CAST(:persona_id AS TEXT) IS NULL OR s.persona_id = :persona_id)
  AND (CAST(:agent AS TEXT) IS NULL OR a.assigned_agent_id = :agent)
  AND (CAST(:session AS TEXT) IS NULL OR t.session_id = :session)
  AND (CAST(:worktree AS TEXT) IS NULL OR s.worktree = :worktree)
  AND (CAST(:parent AS {{big}}) IS NULL OR t.parent_id = :parent)
  AND (CAST(:plan AS TEXT) IS NULL OR t.plan = :plan)

-- part: of_plan
{{in_sight}}
  AND (CAST(:plan AS TEXT) IS NULL OR t.plan = :plan)

-- name: add
INSERT INTO tasks (
    title, description, persona_id, parent_id, target_worktree, plan, name, run, context_ref,
    metadata, max_retries, lease_us, session_id, on_failure, no_retry, created_by, created_at
) VALUES (
    :title, :description, :persona_id, :parent_id, :worktree, :plan, :name, :run, :context_ref,
    :metadata, :max_retries, :lease_us, :session_id, :on_failure, :no_retry, :by, :now
) RETURNING id;

-- name: add_status
INSERT INTO task_status (
    task_id, status, persona_id, worktree, session_id, priority, unmet, reserved_for, attempt, retry_count, progress
) VALUES (
    :task_id, 'pending', :persona_id, :worktree, :session, :priority, :unmet, :reserved_for, 0, 0, 0
);

-- name: add_dependency
INSERT INTO task_dependencies (task_id, depends_on) VALUES (:task_id, :on);

-- name: get
SELECT t.id, t.title, t.description, t.parent_id, t.plan, t.name, t.run, t.context_ref, t.metadata,
    t.max_retries, t.lease_us, t.session_id, t.on_failure, t.no_retry, t.created_by, t.created_at,
    s.status, s.persona_id, s.worktree, s.priority, s.unmet, s.not_before, s.reserved_for,
    s.assigned_agent_id, s.attempt, s.retry_count, s.progress, s.claimed_at, s.started_at,
    s.completed_at, s.lease_expires_at, s.result_data, s.artifacts, s.error_message,
    a.assigned_agent_id AS holder, r.assigned_agent_id AS reserved_name
FROM tasks t
JOIN task_status s ON s.task_id = t.id
LEFT JOIN agents a ON a.id = s.assigned_agent_id
LEFT JOIN agents r ON r.id = s.reserved_for
WHERE t.id = :id;

-- name: get_line
-- A task in a list, what whoever holds it must know, and whether any other waits for it.
SELECT t.id, t.title, t.parent_id, t.plan, t.name, t.session_id, t.max_retries, t.lease_us, t.on_failure, t.no_retry,
    s.status, s.persona_id, s.worktree, s.priority, s.unmet, s.progress, s.attempt, s.retry_count, s.not_before,
    s.error_message, s.assigned_agent_id, a.assigned_agent_id AS holder,
    EXISTS (SELECT 1 FROM task_dependencies d WHERE d.depends_on = t.id) AS awaited
FROM tasks t
JOIN task_status s ON s.task_id = t.id
LEFT JOIN agents a ON a.id = s.assigned_agent_id
WHERE t.id = :id;

-- name: dependencies
SELECT d.depends_on, s.status FROM task_dependencies d
JOIN task_status s ON s.task_id = d.depends_on
WHERE d.task_id = :task_id ORDER BY d.depends_on;

-- name: attempts
SELECT x.attempt, a.assigned_agent_id AS agent_id, x.claimed_at, x.started_at, x.ended_at, x.outcome,
    x.error_class, x.error_message
FROM task_attempts x JOIN agents a ON a.id = x.agent_id
WHERE x.task_id = :task_id ORDER BY x.attempt;

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
SELECT status, COUNT(*) AS n FROM task_status
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

-- name: logs
SELECT l.id, l.task_id, a.assigned_agent_id AS agent_id, l.level, l.message, l.logged_at
FROM task_logs l JOIN agents a ON a.id = l.agent_id
WHERE l.task_id = :task_id AND l.id > :cursor ORDER BY l.id LIMIT :limit;

-- name: logs_back
SELECT l.id, l.task_id, a.assigned_agent_id AS agent_id, l.level, l.message, l.logged_at
FROM task_logs l JOIN agents a ON a.id = l.agent_id
WHERE l.task_id = :task_id AND l.id < :cursor ORDER BY l.id DESC LIMIT :limit;

-- name: depth
WITH RECURSIVE above (id) AS (
    SELECT CAST(:task_id AS {{big}})
    UNION ALL
    SELECT t.parent_id FROM tasks t JOIN above a ON t.id = a.id WHERE t.parent_id IS NOT NULL
)
SELECT COUNT(*) AS n FROM above;

-- name: end_attempt
UPDATE task_attempts SET ended_at = :now, outcome = :outcome, error_message = :error, error_class = :error_class
WHERE task_id = :task_id AND ended_at IS NULL;

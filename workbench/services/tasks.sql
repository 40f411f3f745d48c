-- name: add
INSERT INTO tasks (
    title, description, persona_id, parent_id, target_worktree, plan, name, run, context_ref,
    metadata, max_retries, lease_us, created_by, created_at
) VALUES (
    :title, :description, :persona_id, :parent_id, :worktree, :plan, :name, :run, :context_ref,
    :metadata, :max_retries, :lease_us, :by, :now
) RETURNING id;

-- name: add_status
INSERT INTO task_status (
    task_id, status, persona_id, worktree, priority, unmet, reserved_for, attempt, retry_count, progress
) VALUES (
    :task_id, 'pending', :persona_id, :worktree, :priority, :unmet, :reserved_for, 0, 0, 0
);

-- name: add_dependency
INSERT INTO task_dependencies (task_id, depends_on) VALUES (:task_id, :on);

-- name: get
SELECT t.id, t.title, t.description, t.parent_id, t.plan, t.name, t.run, t.context_ref, t.metadata,
    t.max_retries, t.lease_us, t.created_by, t.created_at,
    s.status, s.persona_id, s.worktree, s.priority, s.unmet, s.not_before, s.reserved_for,
    s.assigned_agent_id, s.attempt, s.retry_count, s.progress, s.claimed_at, s.started_at,
    s.completed_at, s.lease_expires_at, s.result_data, s.artifacts, s.error_message,
    a.assigned_agent_id AS holder
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
    x.error_message
FROM task_attempts x JOIN agents a ON a.id = x.agent_id
WHERE x.task_id = :task_id ORDER BY x.attempt;

-- name: list
SELECT t.id, t.title, t.parent_id, t.plan, t.name, s.status, s.persona_id, s.worktree, s.priority,
    s.unmet, s.progress, s.attempt, a.assigned_agent_id AS holder
FROM task_status s
JOIN tasks t ON t.id = s.task_id
LEFT JOIN agents a ON a.id = s.assigned_agent_id
WHERE s.task_id > :cursor
  AND (CAST(:status AS TEXT) IS NULL OR s.status = :status)
  AND (CAST(:persona_id AS TEXT) IS NULL OR s.persona_id = :persona_id)
  AND (CAST(:worktree AS TEXT) IS NULL OR s.worktree = :worktree)
  AND (CAST(:plan AS TEXT) IS NULL OR t.plan = :plan)
ORDER BY s.task_id LIMIT :limit;

-- name: tree
SELECT t.id, t.title, t.parent_id, t.plan, t.name, s.status, s.persona_id, s.worktree, s.priority,
    s.unmet, s.progress, s.attempt, a.assigned_agent_id AS holder
FROM tasks t
JOIN task_status s ON s.task_id = t.id
LEFT JOIN agents a ON a.id = s.assigned_agent_id
ORDER BY t.id;

-- name: edges
SELECT task_id, depends_on FROM task_dependencies ORDER BY task_id, depends_on;

-- name: logs
SELECT l.id, l.task_id, a.assigned_agent_id AS agent_id, l.level, l.message, l.logged_at
FROM task_logs l JOIN agents a ON a.id = l.agent_id
WHERE l.task_id = :task_id AND l.id > :cursor ORDER BY l.id LIMIT :limit;

-- name: subtree_open
WITH RECURSIVE below (id) AS (
    SELECT id FROM tasks WHERE id = :task_id
    UNION ALL
    SELECT t.id FROM tasks t JOIN below b ON t.parent_id = b.id
)
SELECT b.id FROM below b JOIN task_status s ON s.task_id = b.id
WHERE s.status IN ('pending', 'claimed', 'in_progress') ORDER BY b.id;

-- name: depth
WITH RECURSIVE above (id) AS (
    SELECT CAST(:task_id AS {{big}})
    UNION ALL
    SELECT t.parent_id FROM tasks t JOIN above a ON t.id = a.id WHERE t.parent_id IS NOT NULL
)
SELECT COUNT(*) AS n FROM above;

-- name: cancel
UPDATE task_status SET status = 'cancelled', completed_at = :now, error_message = :reason,
    assigned_agent_id = NULL, lease_expires_at = NULL, not_before = NULL
WHERE task_id = :task_id;

-- name: end_attempt
UPDATE task_attempts SET ended_at = :now, outcome = :outcome, error_message = :error
WHERE task_id = :task_id AND ended_at IS NULL;

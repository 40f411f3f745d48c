-- name: personas
SELECT id, lease_us FROM personas ORDER BY id;

-- name: find
SELECT name, sha256 FROM plans WHERE name = :name;

-- name: names
SELECT name FROM plans;

-- name: list
SELECT p.name AS plan, COUNT(t.id) AS tasks,
    COALESCE(SUM(CASE WHEN s.status = 'completed' THEN 1 ELSE 0 END), 0) AS completed,
    COALESCE(SUM(CASE WHEN s.status IN ('pending', 'claimed', 'in_progress') THEN 1 ELSE 0 END), 0) AS open
FROM plans p
LEFT JOIN tasks t ON t.plan = p.name
LEFT JOIN task_status s ON s.task_id = t.id
GROUP BY p.name, p.created_at
HAVING CAST(:everything AS {{big}}) = 1
    OR SUM(CASE WHEN t.session_id IS NULL OR t.session_id = CAST(:mine AS TEXT) THEN 0 ELSE 1 END) = 0
ORDER BY p.created_at, COALESCE(MIN(t.id), 0), p.name;

-- name: tasks
SELECT t.id, t.name, t.title, t.description, t.parent_id, t.target_worktree, t.run, t.context_ref, t.metadata,
    t.max_retries, t.lease_us, t.session_id, t.on_failure, t.no_retry, s.persona_id, s.priority, s.status
FROM tasks t JOIN task_status s ON s.task_id = t.id
WHERE t.plan = :plan ORDER BY t.id;

-- name: edges
SELECT d.task_id, d.depends_on FROM task_dependencies d
JOIN tasks t ON t.id = d.task_id
JOIN tasks o ON o.id = d.depends_on
WHERE t.plan = :plan AND o.plan = :plan ORDER BY d.task_id, d.depends_on;

-- name: add
INSERT INTO plans (name, sha256, created_by, created_at, updated_at) VALUES (:name, :sha256, :by, :now, :now);

-- name: remember
UPDATE plans SET sha256 = :sha256, updated_at = :now WHERE name = :name;

-- name: set_parent
UPDATE tasks SET parent_id = CAST(:parent AS {{big}}) WHERE id = :id;

-- name: set_task
UPDATE tasks SET title = :title, description = :description, persona_id = :persona, target_worktree = :worktree,
    run = :run, context_ref = :context_ref, metadata = :metadata, max_retries = :max_retries, lease_us = :lease_us,
    session_id = CAST(:session AS TEXT), on_failure = :on_failure, no_retry = :no_retry
WHERE id = :id;

-- name: set_status
-- Who it was reserved for could not claim it in another session.
UPDATE task_status SET persona_id = :persona, worktree = :worktree, session_id = :session, priority = :priority,
    reserved_for = CASE WHEN CAST(:session AS TEXT) IN ('', session_id) THEN reserved_for END
WHERE task_id = :id;

-- name: detach
UPDATE tasks SET plan = NULL WHERE id = :id;

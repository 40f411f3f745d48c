-- name: add
INSERT INTO tasks (
    title, description, persona_id, parent_id, target_worktree, plan, name, run, check_stated, done_when, context_ref,
    metadata, max_retries, lease_us, session_id, on_failure, no_retry, due, created_by, created_at
) VALUES (
    :title, :description, :persona_id, :parent_id, :worktree, :plan, :name, :run, CAST(:check AS TEXT), CAST(:done_when AS TEXT), :context_ref,
    :metadata, :max_retries, :lease_us, :session_id, :on_failure, :no_retry, :due, :by, :now
) RETURNING id;

-- name: add_status
INSERT INTO task_status (
    task_id, status, persona_id, worktree, session_id, priority, unmet, reserved_for, attempt, retry_count, progress, needs
) VALUES (
    :task_id, 'pending', :persona_id, :worktree, :session, :priority, 0, :reserved_for, 0, 0, 0, CAST(:needs AS TEXT)
);

-- name: add_dependency
INSERT INTO task_dependencies (task_id, depends_on) VALUES (:task_id, :on);

-- name: depth
WITH RECURSIVE above (id) AS (
    SELECT CAST(:task_id AS {{big}})
    UNION ALL
    SELECT t.parent_id FROM tasks t JOIN above a ON t.id = a.id WHERE t.parent_id IS NOT NULL
)
SELECT COUNT(*) AS n FROM above;

-- name: agent
SELECT id, assigned_agent_id FROM agents WHERE assigned_agent_id = :agent_id;

-- name: of_plan
SELECT id FROM tasks WHERE plan = :plan AND name = :name;

-- name: created_between
SELECT id, title FROM tasks WHERE created_at >= :start AND created_at < :until ORDER BY id;

-- name: add
INSERT INTO tasks (
    title, description, persona_id, target_worktree, plan, name, run, check_stated, done_when, context_ref, metadata,
    max_retries, lease_us, session_id, on_failure, no_retry, due, created_by, created_at
) VALUES (
    :title, :description, :persona_id, :target_worktree, :plan, :name, :run, CAST(:check AS TEXT),
    CAST(:done_when AS TEXT), :context_ref, :metadata, :max_retries, :lease_us, :session, :on_failure, :no_retry, :due,
    :created_by, :created_at
) RETURNING id;

-- name: add_status
INSERT INTO task_status (
    task_id, status, persona_id, worktree, session_id, priority, unmet, not_before, reserved_for, assigned_agent_id,
    attempt, retry_count, progress, started_at, completed_at, result_data, artifacts, error_message, evidence, needs
) VALUES (
    :task_id, :status, :persona_id, :worktree, :session, :priority, 0, :not_before, :reserved_for, :assigned_agent_id,
    0, :retry_count, :progress, :started_at, :completed_at, CAST(:result_data AS TEXT), CAST(:artifacts AS TEXT),
    CAST(:error_message AS TEXT), CAST(:evidence AS TEXT), CAST(:needs AS TEXT)
);

-- name: set_parent
UPDATE tasks SET parent_id = :parent WHERE id = :id;

-- name: add_dependency
INSERT INTO task_dependencies (task_id, depends_on) VALUES (:task_id, :on);

-- name: add_plan
-- Without a hash: the next update of the plan compares its text with the tasks.
INSERT INTO plans (name, sha256, created_by, created_at, updated_at) VALUES (:name, '', :by, :now, :now)
ON CONFLICT (name) DO UPDATE SET sha256 = '', updated_at = :now;

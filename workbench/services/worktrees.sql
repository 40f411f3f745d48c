-- name: add
INSERT INTO worktrees (name, branch_name, base_commit, integration_target, path, status, created_by, created_at)
VALUES (:name, :branch, :commit, :target, :path, 'active', :by, :now)
ON CONFLICT (name) DO UPDATE SET branch_name = excluded.branch_name, base_commit = excluded.base_commit,
    integration_target = excluded.integration_target, path = excluded.path, status = 'active',
    integrated_commit = NULL, created_by = excluded.created_by, created_at = excluded.created_at,
    closed_at = NULL;

-- name: get
SELECT * FROM worktrees WHERE name = :name;

-- name: active
SELECT * FROM worktrees WHERE status IN ('active', 'integrating') ORDER BY created_at, name;

-- name: integrating
SELECT * FROM worktrees WHERE status = 'integrating' ORDER BY created_at, name;

-- name: set_integrating
UPDATE worktrees SET status = 'integrating' WHERE name = :name AND status = 'active';

-- name: set_status
UPDATE worktrees SET status = :status WHERE name = :name;

-- name: close
UPDATE worktrees SET status = :status, integrated_commit = :commit, closed_at = :now WHERE name = :name;

-- name: agents
SELECT assigned_agent_id FROM agents
WHERE assigned_worktree = :name AND registration_status IN ('pending', 'assigned', 'active')
ORDER BY registered_at;

-- name: open_tasks
SELECT COUNT(*) AS n FROM task_status
WHERE worktree = :name AND status IN ('pending', 'claimed', 'in_progress');

-- name: add
INSERT INTO worktrees (name, branch_name, base_commit, integration_target, path, git_dir, status, confined,
    imported_commit, imported_at, protected, created_by, creator, created_at)
VALUES (:name, :branch, :commit, :target, :path, :git_dir, 'active', :confined, :commit, :now, :protected, :by, :creator, :now)
ON CONFLICT (name) DO UPDATE SET branch_name = excluded.branch_name, base_commit = excluded.base_commit,
    integration_target = excluded.integration_target, path = excluded.path, git_dir = excluded.git_dir,
    status = 'active', confined = excluded.confined, imported_commit = excluded.imported_commit,
    imported_at = excluded.imported_at, protected = excluded.protected, integrated_commit = NULL,
    created_by = excluded.created_by, creator = excluded.creator, created_at = excluded.created_at, closed_at = NULL;

-- name: get
SELECT * FROM worktrees WHERE name = :name;

-- name: open
SELECT * FROM worktrees WHERE status IN ('active', 'integrating') ORDER BY created_at, name;

-- name: all
SELECT * FROM worktrees ORDER BY created_at, name;

-- name: set_status
UPDATE worktrees SET status = :status WHERE name = :name AND status = :before;

-- name: close
UPDATE worktrees SET status = :status, integrated_commit = :commit, closed_at = :now
WHERE name = :name AND status = :before;

-- name: imported
UPDATE worktrees SET imported_commit = :commit, imported_at = :now
WHERE name = :name AND (imported_commit IS NULL OR imported_commit <> :commit);

-- name: agents
SELECT assigned_worktree AS worktree, assigned_agent_id FROM agents
WHERE assigned_worktree IN (SELECT value FROM {{rows_of names}} AS n)
  AND registration_status IN ('pending', 'assigned', 'active', 'inactive')
ORDER BY registered_at;

-- name: work
SELECT worktree,
    SUM(CASE WHEN status IN ('pending', 'claimed', 'in_progress') THEN 1 ELSE 0 END) AS open_tasks,
    SUM(CASE WHEN status IN ('claimed', 'in_progress') THEN 1 ELSE 0 END) AS running,
    MAX(claimed_at) AS claimed_at, MAX(started_at) AS started_at, MAX(completed_at) AS completed_at
FROM task_status WHERE worktree IN (SELECT value FROM {{rows_of names}} AS n) GROUP BY worktree;

-- name: running
SELECT task_id FROM task_status
WHERE worktree = :name AND status IN ('claimed', 'in_progress') ORDER BY task_id;

-- name: questions
SELECT approval_id, worktree, state FROM integrations
ORDER BY CASE WHEN state = 'asked' THEN 1 ELSE 0 END, queued_at, approval_id;

-- name: forget_question
DELETE FROM integrations WHERE worktree = :name;

-- name: begin
INSERT INTO worktree_steps (name, step, path, git_dir, branch_name, branch_commit, begun_at)
VALUES (:name, :step, :path, :git_dir, :branch, :commit, :now)
ON CONFLICT (name) DO UPDATE SET step = excluded.step, path = excluded.path, git_dir = excluded.git_dir,
    branch_name = excluded.branch_name, branch_commit = excluded.branch_commit, begun_at = excluded.begun_at;

-- name: end
DELETE FROM worktree_steps WHERE name = :name;

-- name: steps
SELECT * FROM worktree_steps ORDER BY begun_at, name;

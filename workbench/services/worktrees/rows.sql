-- name: add
INSERT INTO worktrees (name, branch_name, base_commit, integration_target, status, confined,
    imported_commit, imported_at, protected, created_by, creator, machine, created_at)
VALUES (:name, :branch, :base, :target, 'active', :confined, :commit, :now, :protected, :by, :creator, :machine, :now)
ON CONFLICT (name) DO UPDATE SET branch_name = excluded.branch_name, base_commit = excluded.base_commit,
    integration_target = excluded.integration_target,
    status = 'active', confined = excluded.confined, imported_commit = excluded.imported_commit,
    imported_at = excluded.imported_at, protected = excluded.protected, integrated_commit = NULL,
    created_by = excluded.created_by, creator = excluded.creator, machine = excluded.machine, created_at = excluded.created_at, closed_at = NULL;

-- name: get
SELECT * FROM worktrees WHERE name = :name;

-- name: last_on_branch
SELECT integration_target FROM closed_worktrees WHERE branch_name = :branch ORDER BY id DESC LIMIT 1;

-- name: record_closed
INSERT INTO closed_worktrees (name, branch_name, integration_target, status, base_commit, last_commit,
    integrated_commit, approval_id, reason, branch_kept, bundle, machine, created_by, created_at, closed_by, closed_at)
SELECT name, branch_name, :target, status, base_commit, imported_commit, integrated_commit, :approval_id, :reason,
    :branch_kept, :bundle, machine, created_by, created_at, :by, closed_at
FROM worktrees WHERE name = :name;

-- name: open
SELECT * FROM worktrees WHERE status IN ('active', 'integrating') ORDER BY created_at, name;

-- name: all
SELECT * FROM worktrees ORDER BY created_at, name;

-- name: set_status
UPDATE worktrees SET status = :status WHERE name = :name AND status = :before;

-- name: close
UPDATE worktrees SET status = :status, integrated_commit = :commit, closed_at = :now
WHERE name = :name AND status = :before;

-- name: forget_question
DELETE FROM integrations WHERE worktree = :name;

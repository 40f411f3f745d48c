-- name: begin
INSERT INTO worktree_steps (name, step, branch_name, branch_commit, begun_at)
VALUES (:name, :step, :branch, :commit, :now)
ON CONFLICT (name) DO UPDATE SET step = excluded.step, branch_name = excluded.branch_name,
    branch_commit = excluded.branch_commit, begun_at = excluded.begun_at;

-- name: end
DELETE FROM worktree_steps WHERE name = :name;

-- name: steps
SELECT * FROM worktree_steps ORDER BY begun_at, name;

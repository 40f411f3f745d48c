-- name: begin
INSERT INTO worktree_steps (name, step, branch_name, branch_commit, machine, begun_at)
VALUES (:name, :step, :branch, :commit, :machine, :now)
ON CONFLICT (name) DO UPDATE SET step = excluded.step, branch_name = excluded.branch_name,
    branch_commit = excluded.branch_commit, machine = excluded.machine, begun_at = excluded.begun_at;

-- name: get
SELECT machine FROM worktree_steps WHERE name = :name;

-- name: end
DELETE FROM worktree_steps WHERE name = :name;

-- name: steps
SELECT * FROM worktree_steps WHERE CAST(:machine AS TEXT) IS NULL OR machine = :machine ORDER BY begun_at, name;

CREATE VIEW worktrees AS
SELECT name, branch, target, status, machine, commit_id, created_by, make_timestamptz(created_us) AS created_at,
    make_timestamptz(closed_us) AS closed_at
FROM raw_worktrees;

COMMENT ON VIEW worktrees IS 'Git worktrees that agents work in; of those with one name, the last.';
COMMENT ON COLUMN worktrees.name IS 'Its name.';
COMMENT ON COLUMN worktrees.branch IS 'The branch that is checked out in it.';
COMMENT ON COLUMN worktrees.target IS 'The branch that it is to be merged into.';
COMMENT ON COLUMN worktrees.status IS 'active, integrating, integrated or discarded.';
COMMENT ON COLUMN worktrees.machine IS 'The machine that has its files; empty: it is older than names of machines.';
COMMENT ON COLUMN worktrees.commit_id IS 'The commit that merged it; null: not merged.';
COMMENT ON COLUMN worktrees.created_by IS 'Who created it.';
COMMENT ON COLUMN worktrees.created_at IS 'When it was created.';
COMMENT ON COLUMN worktrees.closed_at IS 'When it was merged or discarded; null: it is open.';

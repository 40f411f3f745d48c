-- Where the files of worktrees and the logs of processes are follows from the project and their names: a store that was
-- moved or copied with its project does not name files of the place where it was before.

ALTER TABLE worktrees DROP COLUMN path;
ALTER TABLE worktrees DROP COLUMN git_dir;
ALTER TABLE worktree_steps DROP COLUMN path;
ALTER TABLE worktree_steps DROP COLUMN git_dir;
ALTER TABLE processes DROP COLUMN log;

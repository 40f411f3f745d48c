SELECT
    (SELECT count(*) FROM tasks) AS tasks,
    (SELECT count(*) FROM tasks WHERE status = 'completed') AS completed,
    (SELECT count(*) FROM attempts) AS attempts,
    (SELECT count(*) FROM agents WHERE status NOT IN ('pending', 'rejected')) AS agents,
    (SELECT count(*) FROM worktrees WHERE status = 'integrated') AS worktrees_integrated,
    (SELECT count(*) FROM events) AS events

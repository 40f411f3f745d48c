SELECT
    (SELECT count(*) FROM tasks) AS tasks,
    (SELECT count(*) FROM tasks WHERE status = 'completed') AS completed,
    (SELECT count(*) FROM tasks WHERE status = 'failed') AS failed,
    (SELECT count(*) FROM tasks WHERE status = 'cancelled') AS cancelled,
    (SELECT count(*) FROM tasks WHERE status NOT IN ('completed', 'failed', 'cancelled')) AS open,
    (SELECT count(*) FROM attempts) AS attempts,
    (SELECT count(DISTINCT agent) FROM attempts) AS at_work,
    (SELECT count(*) FROM agents WHERE status NOT IN ('pending', 'rejected')) AS agents,
    (SELECT count(*) FROM worktrees WHERE status = 'integrated') AS worktrees_integrated,
    (SELECT count(*) FROM events) AS events

-- name: exists
SELECT 1 AS found FROM tasks WHERE plan = :plan LIMIT 1;

-- name: list
SELECT t.plan, COUNT(*) AS tasks,
    SUM(CASE WHEN s.status = 'completed' THEN 1 ELSE 0 END) AS completed,
    SUM(CASE WHEN s.status IN ('pending', 'claimed', 'in_progress') THEN 1 ELSE 0 END) AS open
FROM tasks t JOIN task_status s ON s.task_id = t.id
WHERE t.plan IS NOT NULL GROUP BY t.plan ORDER BY MIN(t.id);

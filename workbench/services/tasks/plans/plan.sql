-- name: list
SELECT p.name AS plan, COUNT(t.id) AS tasks,
    COALESCE(SUM(CASE WHEN s.status = 'completed' THEN 1 ELSE 0 END), 0) AS completed,
    COALESCE(SUM(CASE WHEN s.status = 'failed' THEN 1 ELSE 0 END), 0) AS failed,
    COALESCE(SUM(CASE WHEN s.status = 'cancelled' THEN 1 ELSE 0 END), 0) AS cancelled,
    COALESCE(SUM(CASE WHEN s.status IN ('pending', 'claimed', 'in_progress') THEN 1 ELSE 0 END), 0) AS open
FROM plans p
LEFT JOIN tasks t ON t.plan = p.name
LEFT JOIN task_status s ON s.task_id = t.id
GROUP BY p.name, p.created_at
HAVING CAST(:everything AS {{big}}) = 1
    OR SUM(CASE WHEN t.session_id IS NULL OR t.session_id = CAST(:mine AS TEXT) THEN 0 ELSE 1 END) = 0
ORDER BY p.created_at, COALESCE(MIN(t.id), 0), p.name;

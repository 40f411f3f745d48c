-- name: list
SELECT p.name AS plan, SUBSTR(p.sha256, 1, 12) AS version, COUNT(t.id) AS tasks,
    COALESCE(SUM(CASE WHEN s.status = 'completed' THEN 1 ELSE 0 END), 0) AS completed,
    COALESCE(SUM(CASE WHEN s.status = 'failed' THEN 1 ELSE 0 END), 0) AS failed,
    COALESCE(SUM(CASE WHEN s.status = 'cancelled' THEN 1 ELSE 0 END), 0) AS cancelled,
    COALESCE(SUM(CASE WHEN s.status IN ('pending', 'claimed', 'in_progress') THEN 1 ELSE 0 END), 0) AS open,
    COALESCE(SUM(CASE WHEN s.status = 'pending' AND s.unmet > 0 THEN 1 ELSE 0 END), 0) AS blocked
FROM plans p
LEFT JOIN tasks t ON t.plan = p.name
LEFT JOIN task_status s ON s.task_id = t.id
GROUP BY p.name, p.sha256, p.created_at
HAVING CAST(:everything AS {{big}}) = 1
    OR SUM(CASE WHEN t.session_id IS NULL OR t.session_id = CAST(:mine AS TEXT) THEN 0 ELSE 1 END) = 0
ORDER BY p.created_at, COALESCE(MIN(t.id), 0), p.name;

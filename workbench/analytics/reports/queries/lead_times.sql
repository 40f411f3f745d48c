WITH whole AS (
    SELECT count(*) FILTER (WHERE status = 'failed') AS of_failed, count(*) FILTER (WHERE status = 'cancelled') AS of_cancelled,
        count(*) FILTER (WHERE status NOT IN ('completed', 'failed', 'cancelled')) AS of_open
    FROM tasks
)
SELECT id, coalesce(name, title) AS task, plan, persona, lead_seconds AS lead_s,
    round(lead_seconds - coalesce(a.held_s, 0), 6) AS wait_s, coalesce(a.held_s, 0) AS work_s, w.*
FROM tasks CROSS JOIN whole w LEFT JOIN (SELECT task_id, sum(seconds) AS held_s FROM attempts GROUP BY task_id) a ON a.task_id = id
WHERE status = 'completed' ORDER BY lead_s DESC, id

WITH plans AS (
    SELECT plan, min(began_at) AS zero, max(completed_at) AS done_at FROM critical_path GROUP BY plan
), whole AS (
    SELECT plan, count(*) FILTER (WHERE status = 'completed') AS completed, count(*) FILTER (WHERE status = 'failed') AS failed,
        count(*) FILTER (WHERE status = 'cancelled') AS cancelled,
        count(*) FILTER (WHERE status NOT IN ('completed', 'failed', 'cancelled')) AS open
    FROM tasks GROUP BY plan
)
SELECT coalesce(c.plan, 'tasks without a plan') AS of_plan, c.step,
    CASE WHEN count(*) OVER (PARTITION BY c.plan, c.task) > 1 THEN c.task || ' (task ' || c.task_id || ')' ELSE c.task END AS task,
    c.agent, epoch(c.began_at - p.zero) AS start_s,
    epoch(c.began_at - p.zero) + c.seconds AS end_s, c.seconds, c.work_seconds AS work_s, c.wait_seconds AS wait_s,
    w.completed AS of_completed, w.failed AS of_failed, w.cancelled AS of_cancelled, w.open AS of_open
FROM critical_path c JOIN plans p ON p.plan IS NOT DISTINCT FROM c.plan JOIN whole w ON w.plan IS NOT DISTINCT FROM c.plan
ORDER BY p.done_at DESC, of_plan, c.step

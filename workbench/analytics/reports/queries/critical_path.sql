WITH plans AS (
    SELECT plan, min(began_at) AS zero, max(completed_at) AS done_at FROM critical_path GROUP BY plan
)
SELECT coalesce(c.plan, 'tasks without a plan') AS of_plan, c.step,
    CASE WHEN count(*) OVER (PARTITION BY c.plan, c.task) > 1 THEN c.task || ' (task ' || c.task_id || ')' ELSE c.task END AS task,
    c.agent, epoch(c.began_at - p.zero) AS start_s,
    epoch(c.began_at - p.zero) + c.seconds AS end_s, c.seconds, c.work_seconds AS work_s, c.wait_seconds AS wait_s
FROM critical_path c JOIN plans p ON p.plan IS NOT DISTINCT FROM c.plan
ORDER BY p.done_at DESC, of_plan, c.step

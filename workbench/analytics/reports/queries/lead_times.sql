SELECT id, coalesce(name, title) AS task, plan, persona, lead_seconds AS lead_s,
    round(lead_seconds - coalesce(a.held_s, 0), 6) AS wait_s, coalesce(a.held_s, 0) AS work_s
FROM tasks LEFT JOIN (SELECT task_id, sum(seconds) AS held_s FROM attempts GROUP BY task_id) a ON a.task_id = id
WHERE status = 'completed' ORDER BY lead_s DESC, id

SELECT r.id AS run, r.id || ' ' || r.name AS compared, r.sweep, r.state, r.seconds, r.tries, r.git_commit,
    coalesce(t.created, 0) AS tasks, coalesce(t.completed, 0) AS completed, coalesce(t.failed, 0) AS failed,
    t.median_lead_s, m.metrics, r.parameters,
    (SELECT count(*) FROM runs WHERE archived AND len($groups) = 0) AS of_archived
FROM runs r
LEFT JOIN (
    SELECT session, count(*) AS created, count(*) FILTER (WHERE status = 'completed') AS completed,
        count(*) FILTER (WHERE status = 'failed') AS failed, median(lead_seconds) FILTER (WHERE status = 'completed') AS median_lead_s
    FROM tasks GROUP BY session
) t ON t.session = (SELECT s.session FROM sessions s WHERE s.id = r.session_id)
LEFT JOIN (
    SELECT run_id, json_group_object(name, coalesce(text, CAST(value AS VARCHAR))) AS metrics
    FROM run_metrics WHERE is_last GROUP BY run_id
) m ON m.run_id = r.id
WHERE (len($groups) = 0 AND NOT r.archived) OR list_contains($groups, CAST(r.id AS VARCHAR))
ORDER BY r.id

SELECT coalesce(CAST({{by}} AS VARCHAR), 'none') AS compared, count(*) AS created,
    count(*) FILTER (WHERE status = 'completed') AS completed, count(*) FILTER (WHERE status = 'failed') AS failed,
    count(*) FILTER (WHERE status = 'cancelled') AS cancelled,
    count(*) FILTER (WHERE status NOT IN ('completed', 'failed', 'cancelled')) AS open,
    sum(attempts) AS attempts, sum(retries) AS retries,
    median(lead_seconds) FILTER (WHERE status = 'completed') AS median_lead_s,
    median(duration_seconds) FILTER (WHERE status = 'completed') AS median_duration_s,
    coalesce(sum(w.dependency_s), 0) AS dependency_s, coalesce(sum(w.agent_s), 0) AS agent_s,
    coalesce(sum(w.person_s), 0) AS person_s, coalesce(sum(w.retry_s), 0) AS retry_s,
    CASE WHEN count(*) FILTER (WHERE completed_at IS NULL) = 0 THEN epoch(max(completed_at) - min(created_at)) END AS whole_s
FROM tasks t LEFT JOIN (
    SELECT task_id, sum(seconds) FILTER (WHERE waits_for = 'dependency') AS dependency_s,
        sum(seconds) FILTER (WHERE waits_for = 'agent') AS agent_s, sum(seconds) FILTER (WHERE waits_for = 'person') AS person_s,
        sum(seconds) FILTER (WHERE waits_for = 'retry') AS retry_s
    FROM waits GROUP BY task_id
) w ON w.task_id = t.id
WHERE len($groups) = 0 OR list_contains($groups, CAST(t.{{by}} AS VARCHAR))
GROUP BY t.{{by}} ORDER BY created DESC, min(created_at), compared

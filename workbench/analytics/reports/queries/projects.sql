SELECT {{name}} AS compared, count(*) AS created,
    count(*) FILTER (WHERE status = 'completed') AS completed, count(*) FILTER (WHERE status = 'failed') AS failed,
    count(*) FILTER (WHERE status = 'cancelled') AS cancelled,
    count(*) FILTER (WHERE status NOT IN ('completed', 'failed', 'cancelled')) AS open,
    sum(attempts) AS attempts, sum(retries) AS retries,
    median(lead_seconds) FILTER (WHERE status = 'completed') AS median_lead_s,
    median(duration_seconds) FILTER (WHERE status = 'completed') AS median_duration_s,
    coalesce((SELECT sum(seconds) FROM {{project}}waits WHERE waits_for = 'dependency'), 0) AS dependency_s,
    coalesce((SELECT sum(seconds) FROM {{project}}waits WHERE waits_for = 'agent'), 0) AS agent_s,
    coalesce((SELECT sum(seconds) FROM {{project}}waits WHERE waits_for = 'person'), 0) AS person_s,
    coalesce((SELECT sum(seconds) FROM {{project}}waits WHERE waits_for = 'retry'), 0) AS retry_s,
    (SELECT count(*) FROM {{project}}agents) AS agents, (SELECT sum(cost_usd) FROM {{project}}turns) AS cost_usd,
    CASE WHEN count(*) FILTER (WHERE completed_at IS NULL) = 0 THEN epoch(max(completed_at) - min(created_at)) END AS whole_s
FROM {{project}}tasks HAVING count(*) > 0

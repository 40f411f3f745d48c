SELECT CASE WHEN kind = 'unknown' THEN 'unknown' ELSE source END AS source, server, count(DISTINCT tool_name) AS tools, count(*) AS calls,
    count(*) FILTER (WHERE state = 'failed' AND started_at IS NOT NULL) AS failed,
    count(*) FILTER (WHERE state = 'failed' AND started_at IS NULL) AS refused,
    count(*) FILTER (WHERE state IN ('cancelled', 'interrupted')) AS ended_early,
    count(*) FILTER (WHERE ended_at IS NULL) AS open,
    round(1e3 * median(seconds), 1) AS median_ms,
    round(1e3 * quantile_cont(seconds, 0.95), 1) AS p95_ms,
    round(1e3 * max(seconds), 1) AS longest_ms,
    round(sum(seconds), 1) AS total_s,
    round(median(wait_seconds) FILTER (WHERE approval_id IS NOT NULL), 1) AS approval_wait_s
FROM tool_calls GROUP BY 1, server ORDER BY source, server NULLS FIRST

SELECT CASE WHEN kind = 'unknown' THEN 'unknown' ELSE source END AS source, server, tool_name AS tool, count(*) AS calls,
    count(*) FILTER (WHERE state = 'completed') AS completed,
    count(*) FILTER (WHERE state = 'failed' AND started_at IS NOT NULL) AS failed,
    count(*) FILTER (WHERE state = 'failed' AND started_at IS NULL) AS refused,
    count(*) FILTER (WHERE state IN ('cancelled', 'interrupted')) AS ended_early,
    count(*) FILTER (WHERE ended_at IS NULL) AS open,
    round(1e3 * median(seconds), 1) AS median_ms,
    round(1e3 * quantile_cont(seconds, 0.95), 1) AS p95_ms,
    round(1e3 * max(seconds), 1) AS longest_ms,
    round(median(wait_seconds) FILTER (WHERE approval_id IS NOT NULL), 1) AS approval_wait_s
FROM tool_calls GROUP BY 1, server, tool_name ORDER BY source, server NULLS FIRST, tool

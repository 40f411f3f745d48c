-- At most 60 intervals, however long the project has run.
WITH whole AS (
    SELECT count(*) FILTER (WHERE status = 'failed') AS of_failed, count(*) FILTER (WHERE status = 'cancelled') AS of_cancelled,
        count(*) FILTER (WHERE status NOT IN ('completed', 'failed', 'cancelled')) AS of_open
    FROM tasks
), span AS (
    SELECT min(epoch(completed_at)) AS from_s, greatest(1, ceil((max(epoch(completed_at)) - min(epoch(completed_at))) / 59)) AS width
    FROM tasks WHERE status = 'completed'
)
SELECT persona, floor((epoch(t.completed_at) - s.from_s) / s.width) * s.width AS from_s, any_value(s.width) AS interval_s,
    count(*) AS completed, any_value(w.of_failed) AS of_failed, any_value(w.of_cancelled) AS of_cancelled,
    any_value(w.of_open) AS of_open
FROM tasks t CROSS JOIN span s CROSS JOIN whole w WHERE t.status = 'completed' GROUP BY persona, 2 ORDER BY 2, 1

-- At most 60 intervals, however long the project has run.
WITH span AS (
    SELECT min(epoch(completed_at)) AS from_s, greatest(1, ceil((max(epoch(completed_at)) - min(epoch(completed_at))) / 59)) AS width
    FROM tasks WHERE status = 'completed'
)
SELECT persona, floor((epoch(t.completed_at) - s.from_s) / s.width) * s.width AS from_s, any_value(s.width) AS interval_s,
    count(*) AS completed
FROM tasks t CROSS JOIN span s WHERE t.status = 'completed' GROUP BY ALL ORDER BY 2, 1

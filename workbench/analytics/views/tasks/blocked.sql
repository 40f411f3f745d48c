-- What a task waits for may itself wait for what failed. A task that goes on without what failed is not blocked by it.
CREATE VIEW blocked AS
WITH RECURSIVE reached AS (
    SELECT id, id AS over_id, completed_us AS us, FALSE AS is_waiting FROM raw_tasks WHERE status IN ('failed', 'cancelled')
    UNION
    SELECT t.id, r.over_id, greatest(r.us, t.created_us), TRUE
    FROM reached r
    JOIN held_back h ON h.depends_on = r.id
    JOIN raw_tasks o ON o.id = h.by_way_of AND (r.is_waiting OR o.on_failure <> 'ignore')
    JOIN raw_tasks t ON t.id = h.task_id AND t.status = 'pending'
)
SELECT id AS task_id, make_timestamptz(min(us)) AS blocked_at, arg_min(over_id, us) AS needs
FROM reached WHERE is_waiting GROUP BY id;

COMMENT ON VIEW blocked IS 'Tasks that cannot start unless a task is retried: they need one that failed for good or is cancelled.';
COMMENT ON COLUMN blocked.task_id IS 'The task that cannot start.';
COMMENT ON COLUMN blocked.blocked_at IS 'When what it needs failed or was cancelled.';
COMMENT ON COLUMN blocked.needs IS 'The task that failed or is cancelled: a dependency, or one of a dependency or of a task above it.';

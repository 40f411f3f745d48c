-- What a task depends on holds back its subtasks as well, until it has ended. A task above that waits for one of its own
-- subtasks does not hold back the others.
CREATE VIEW held_back AS
WITH RECURSIVE above AS (
    SELECT id AS task_id, parent_id AS id FROM raw_tasks WHERE parent_id IS NOT NULL
    UNION ALL
    SELECT a.task_id, t.parent_id FROM above a JOIN raw_tasks t ON t.id = a.id WHERE t.parent_id IS NOT NULL
)
SELECT task_id, depends_on, task_id AS by_way_of FROM raw_dependencies
UNION ALL
SELECT a.task_id, e.depends_on, a.id
FROM above a
JOIN raw_dependencies e ON e.task_id = a.id
JOIN raw_tasks o ON o.id = a.id
JOIN raw_tasks d ON d.id = e.depends_on
WHERE (o.status IN ('pending', 'claimed', 'in_progress') OR d.completed_us <= o.completed_us)
  AND NOT EXISTS (FROM above s WHERE s.task_id = e.depends_on AND s.id = a.id);

COMMENT ON VIEW held_back IS 'Which task is held back by which: by those that it depends on, and those that a task above it depends on.';
COMMENT ON COLUMN held_back.task_id IS 'The task that waits.';
COMMENT ON COLUMN held_back.depends_on IS 'The task that has to be completed first.';
COMMENT ON COLUMN held_back.by_way_of IS 'The task whose dependency it is: itself, or one above it.';

-- What a task depends on holds back its subtasks as well: unmet counts that, too.

UPDATE task_status SET unmet = (
    WITH RECURSIVE above (id) AS (
        SELECT task_status.task_id
        UNION ALL
        SELECT t.parent_id FROM above a JOIN tasks t ON t.id = a.id WHERE t.parent_id IS NOT NULL
    )
    SELECT COUNT(DISTINCT d.depends_on) FROM above a
    JOIN task_dependencies d ON d.task_id = a.id
    JOIN task_status s ON s.task_id = d.depends_on
    JOIN tasks o ON o.id = a.id
    JOIN task_status p ON p.task_id = a.id
    WHERE s.status <> 'completed' AND NOT (o.on_failure = 'ignore' AND s.status IN ('failed', 'cancelled'))
      AND (a.id = task_status.task_id OR p.status IN ('pending', 'claimed', 'in_progress') AND NOT EXISTS (
        WITH RECURSIVE over (id) AS (
            SELECT d.depends_on
            UNION ALL
            SELECT t.parent_id FROM over r JOIN tasks t ON t.id = r.id WHERE t.parent_id IS NOT NULL
        ) SELECT 1 FROM over WHERE over.id = a.id))
) WHERE status IN ('pending', 'claimed', 'in_progress')
  AND task_id IN (SELECT id FROM tasks WHERE parent_id IS NOT NULL);

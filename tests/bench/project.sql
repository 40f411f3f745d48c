-- name: add_tasks
WITH RECURSIVE number (n) AS (
    SELECT 1 WHERE CAST(:count AS {{big}}) > 0 UNION ALL SELECT n + 1 FROM number WHERE n < CAST(:count AS {{big}})
)
INSERT INTO tasks (title, description, persona_id, metadata, max_retries, lease_us, created_by, created_at)
SELECT 'Task ' || n, 'What is to be done', 'implementer', '{}', 2, 3600000000, 'operator', :now FROM number;

-- name: add_states
-- All are ready, or of ten: three ready, four blocked at a higher priority, two of another persona, one completed.
INSERT INTO task_status (task_id, status, persona_id, worktree, priority, unmet, attempt, retry_count, progress)
SELECT id,
    CASE WHEN :mixed AND id % 10 = 0 THEN 'completed' ELSE 'pending' END,
    CASE WHEN :mixed AND id % 10 IN (8, 9) THEN 'reviewer' ELSE 'implementer' END,
    '',
    CASE WHEN :mixed AND id % 10 BETWEEN 4 AND 7 THEN 900 ELSE 500 + id % 7 END,
    CASE WHEN :mixed AND id % 10 BETWEEN 4 AND 7 THEN 1 ELSE 0 END,
    0, 0, 0
FROM tasks WHERE id NOT IN (SELECT task_id FROM task_status);

-- name: add_blockers
INSERT INTO task_dependencies (task_id, depends_on)
SELECT task_id, task_id - 3 FROM task_status WHERE unmet = 1;

-- name: unclaim
UPDATE task_status SET status = 'pending', assigned_agent_id = NULL, lease_expires_at = NULL, attempt = 0
WHERE status = 'claimed';

-- name: forget_attempts
DELETE FROM task_attempts;

-- name: standing
SELECT COUNT(*) AS tasks, COUNT(*) FILTER (WHERE status = 'completed') AS completed, SUM(attempt) AS attempts,
    (SELECT COUNT(*) FROM events WHERE kind = 'task.claimed') AS claimed,
    (SELECT COUNT(*) FROM events WHERE kind = 'task.completed') AS told
FROM task_status;

-- name: interrupted
SELECT agent_id FROM spawns WHERE state = 'starting' AND (CAST(:machine AS TEXT) IS NULL OR machine = :machine) ORDER BY asked_at;

-- name: queue
UPDATE spawns SET state = 'queued' WHERE agent_id = :agent AND state = 'starting';

-- name: last_sign
-- When something was last heard of a project with work that has begun and is not done; nothing without such work.
SELECT MAX(at) AS at FROM (
    SELECT MAX(last_heartbeat) AS at FROM agents
    UNION ALL
    SELECT at FROM events WHERE id = (SELECT MAX(id) FROM events)
) AS signs
WHERE EXISTS (SELECT 1 FROM task_attempts)
  AND EXISTS (SELECT 1 FROM task_status WHERE status IN ('pending', 'claimed', 'in_progress'));

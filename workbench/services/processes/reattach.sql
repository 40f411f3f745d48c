-- name: interrupted
SELECT agent_id FROM spawns WHERE state = 'starting' ORDER BY asked_at;

-- name: queue
UPDATE spawns SET state = 'queued' WHERE agent_id = :agent AND state = 'starting';

-- name: touch
UPDATE agents SET last_heartbeat = :now WHERE id = :id;

-- name: open
INSERT INTO connections (agent_id, transport, client_id, client, address, server, opened_at)
VALUES (:agent, :transport, :client_id, :client, :address, :server, :now)
RETURNING id;

-- name: close
UPDATE connections SET closed_at = :now WHERE id = :id AND closed_at IS NULL
RETURNING agent_id, transport;

-- name: another
SELECT 1 AS found FROM connections WHERE agent_id = :agent AND closed_at IS NULL LIMIT 1;

-- name: has_process
SELECT 1 AS found FROM processes WHERE agent_id = :agent AND ended_at IS NULL;

-- name: left_open
SELECT id FROM connections WHERE closed_at IS NULL AND server = :server;

-- name: silent
SELECT a.id FROM agents a
WHERE a.registration_status = 'active' AND a.last_heartbeat < :since
  AND NOT EXISTS (SELECT 1 FROM connections c WHERE c.agent_id = a.id AND c.closed_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM processes p WHERE p.agent_id = a.id AND p.ended_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM task_status k
                  WHERE k.assigned_agent_id = a.id AND k.status IN ('claimed', 'in_progress'))
LIMIT 500;

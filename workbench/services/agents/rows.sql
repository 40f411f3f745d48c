-- part: seen
SELECT a.*, (SELECT s.since FROM silent_agents s WHERE s.agent_id = a.id) AS silent_since,
    COALESCE((SELECT 'elsewhere:' || m.machine FROM machine_workers m WHERE m.agent_id = a.id),
        (SELECT p.machine FROM spawns p WHERE p.agent_id = a.id)) AS machine
FROM agents_seen a

-- name: by_id
{{seen}} WHERE a.id = :id;

-- name: by_agent_id
{{seen}} WHERE a.assigned_agent_id = :agent_id AND a.deleted_at IS NULL;

-- name: in_session
SELECT session_id FROM agents WHERE id = :id;

-- name: set_status
UPDATE agents SET registration_status = :status WHERE id = :id AND registration_status <> :status;

-- name: activate
UPDATE agents SET registration_status = 'active'
WHERE id = :id AND registration_status IN ('assigned', 'inactive');

-- name: forgotten
SELECT id FROM agents WHERE registration_status = 'pending' AND registered_at <= :before
ORDER BY registered_at LIMIT 500;

-- name: run_out
SELECT id, registration_status, session_id FROM agents
WHERE expires_at IS NOT NULL AND expired = 0 AND expires_at <= :now ORDER BY expires_at LIMIT 500;

-- name: expire
UPDATE agents SET expired = 1 WHERE id = :id;

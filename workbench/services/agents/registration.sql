-- name: by_id
SELECT * FROM agents_seen WHERE id = :id;

-- name: by_agent_id
SELECT * FROM agents_seen WHERE assigned_agent_id = :agent_id AND deleted_at IS NULL;

-- name: ids_like
SELECT assigned_agent_id AS id FROM agents WHERE assigned_agent_id LIKE :prefix || '%'
UNION ALL
SELECT agent_id FROM former_ids WHERE agent_id LIKE :prefix || '%';

-- name: count_pending
SELECT COUNT(*) AS n, SUM(CASE WHEN address = :address THEN 1 ELSE 0 END) AS from_there
FROM agents WHERE registration_status = 'pending';

-- name: may_register
SELECT enabled FROM agent_tools WHERE id = 'register';

-- name: session_of
SELECT s.id, s.name, p.name AS project FROM agents a
JOIN sessions s ON s.id = a.session_id JOIN projects p ON p.id = s.project_id
WHERE a.id = :id AND s.deleted_at IS NULL AND p.deleted_at IS NULL;

-- name: add
INSERT INTO agents (
    id, assigned_agent_id, name, registration_status, token_hash, persona_id, role, tool,
    capabilities, assigned_worktree, parent_agent_id, connection_id, client, address, registered_at, last_heartbeat
) VALUES (
    :id, :agent_id, :name, 'pending', :token_hash, :persona_id, :role, 'write',
    :capabilities, :worktree, :parent, :connection_id, :client, :address, :now, :now
);

-- name: admit
UPDATE agents SET registration_status = 'assigned' WHERE id = :id AND registration_status = 'pending';

-- name: forgotten
SELECT id FROM agents WHERE registration_status = 'pending' AND registered_at <= :before
ORDER BY registered_at LIMIT 500;

-- name: run_out
SELECT id, registration_status, session_id FROM agents
WHERE expires_at IS NOT NULL AND expired = 0 AND expires_at <= :now ORDER BY expires_at LIMIT 500;

-- name: expire
UPDATE agents SET expired = 1 WHERE id = :id;

-- name: set_status
UPDATE agents SET registration_status = :status WHERE id = :id AND registration_status <> :status;

-- name: decision
SELECT reason FROM approvals WHERE subject = :subject AND kind = 'registration' AND status <> 'pending'
ORDER BY id DESC LIMIT 1;

-- name: heard_of
UPDATE agents SET last_heartbeat = :now WHERE id = :id;

-- name: in_session
SELECT session_id FROM agents WHERE id = :id;

-- name: activate
UPDATE agents SET registration_status = 'active'
WHERE id = :id AND registration_status IN ('assigned', 'inactive');

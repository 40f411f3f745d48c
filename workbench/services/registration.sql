-- name: by_token
SELECT a.id, a.assigned_agent_id, a.registration_status, a.persona_id, a.role, a.tool, a.assigned_worktree,
    a.session_id, a.team_id, a.access_level, a.expires_at, a.deleted_at,
    (SELECT enabled FROM agent_tools WHERE id = 'read') AS may_read,
    (SELECT enabled FROM agent_tools WHERE id = 'write') AS may_write
FROM agents a WHERE a.token_hash = :token_hash;

-- name: as_caller
SELECT a.id, a.assigned_agent_id, a.registration_status, a.persona_id, a.role, a.tool, a.assigned_worktree,
    a.session_id, a.team_id, a.access_level, a.expires_at, a.deleted_at,
    (SELECT enabled FROM agent_tools WHERE id = 'read') AS may_read,
    (SELECT enabled FROM agent_tools WHERE id = 'write') AS may_write
FROM agents a WHERE a.id = :id;

-- name: by_id
SELECT a.*, p.assigned_agent_id AS parent FROM agents a LEFT JOIN agents p ON p.id = a.parent_agent_id
WHERE a.id = :id;

-- name: by_agent_id
SELECT a.*, p.assigned_agent_id AS parent FROM agents a LEFT JOIN agents p ON p.id = a.parent_agent_id
WHERE a.assigned_agent_id = :agent_id;

-- name: ids_like
SELECT assigned_agent_id AS id FROM agents WHERE assigned_agent_id LIKE :prefix || '%';

-- name: count_pending
SELECT COUNT(*) AS n FROM agents WHERE registration_status = 'pending';

-- name: add
INSERT INTO agents (
    id, assigned_agent_id, name, registration_status, token_hash, persona_id, role, tool,
    capabilities, assigned_worktree, parent_agent_id, registered_at, last_heartbeat
) VALUES (
    :id, :agent_id, :name, 'pending', :token_hash, :persona_id, :role, 'write',
    :capabilities, :worktree, :parent, :now, :now
);

-- name: admit
UPDATE agents SET assigned_agent_id = :agent_id, persona_id = :persona_id, role = :role, tool = :tool,
    registration_status = 'assigned'
WHERE id = :id AND registration_status = 'pending';

-- name: set_status
UPDATE agents SET registration_status = :status WHERE id = :id AND registration_status <> :status;

-- name: decision
SELECT reason FROM approvals WHERE subject = :subject AND kind = 'registration' AND status <> 'pending'
ORDER BY id DESC LIMIT 1;

-- name: list
SELECT a.*, p.assigned_agent_id AS parent FROM agents a LEFT JOIN agents p ON p.id = a.parent_agent_id
WHERE CAST(:status AS TEXT) IS NULL OR a.registration_status = :status
ORDER BY a.registered_at, a.id LIMIT :limit;

-- name: activate
UPDATE agents SET registration_status = 'active'
WHERE id = :id AND registration_status IN ('assigned', 'inactive');

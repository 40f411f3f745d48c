-- name: count_pending
SELECT COUNT(*) AS n, SUM(CASE WHEN address = :address THEN 1 ELSE 0 END) AS from_there
FROM agents WHERE registration_status = 'pending';

-- name: may_register
SELECT enabled FROM agent_tools WHERE id = 'register';

-- name: add
INSERT INTO agents (
    id, assigned_agent_id, name, registration_status, token_hash, persona_id, role, tool,
    capabilities, assigned_worktree, parent_agent_id, connection_id, client, address, registered_at, last_heartbeat
) VALUES (
    :id, :agent_id, :name, 'pending', :token_hash, :persona_id, :role, 'write',
    :capabilities, :worktree, :parent, :connection_id, :client, :address, :now, :now
);

-- name: define
UPDATE agents SET definition_id = :definition, self_tools = :self_tools WHERE id = :id;

-- name: grant_tools
UPDATE agents SET tools = :tools WHERE id = :id;

-- name: decision
SELECT reason FROM approvals WHERE subject = :subject AND kind = 'registration' AND status <> 'pending'
ORDER BY id DESC LIMIT 1;

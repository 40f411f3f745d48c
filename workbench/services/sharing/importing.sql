-- name: agent
SELECT id, team_id FROM agents WHERE assigned_agent_id = :agent_id;

-- name: context
SELECT 1 AS found FROM contexts WHERE id = :id;

-- name: add_agent
INSERT INTO agents (
    id, assigned_agent_id, name, registration_status, token_hash, role, tool, parent_agent_id, capabilities,
    registered_at, last_heartbeat
) VALUES (
    :id, :agent_id, :name, :status, :token_hash, 'worker', 'write', :parent, :capabilities,
    :registered_at, :last_heartbeat
);

-- name: holders
-- Two ids that differ only in the case of letters would be taken for one.
SELECT id, assigned_agent_id AS agent_id, deleted_at, NULL AS now FROM agents
WHERE LOWER(assigned_agent_id) = LOWER(CAST(:agent_id AS TEXT))
UNION ALL
SELECT f.id, f.agent_id, NULL, a.assigned_agent_id FROM former_ids f JOIN agents a ON a.id = f.id
WHERE LOWER(f.agent_id) = LOWER(CAST(:agent_id AS TEXT));

-- name: remember_id
INSERT INTO former_ids (agent_id, id) VALUES (:agent_id, :id) ON CONFLICT DO NOTHING;

-- name: grant
UPDATE agents SET assigned_agent_id = :assigned_agent_id, name = :name, session_id = :session_id, team_id = :team_id,
    assigned_worktree = CAST(:assigned_worktree AS TEXT),
    persona_id = :persona_id, role = :role, tool = :tool, access_level = :access_level,
    expires_at = CAST(:expires_at AS {{big}}), expired = :expired,
    definition_hash = CASE WHEN definition_id = CAST(:definition_id AS TEXT) THEN definition_hash END,
    prompt_hash = CASE WHEN definition_id = CAST(:definition_id AS TEXT) THEN prompt_hash END,
    include = CASE WHEN definition_id = CAST(:definition_id AS TEXT) THEN include END,
    definition_id = CAST(:definition_id AS TEXT), self_tools = :self_tools, may_define = :may_define,
    tools = :tools
WHERE id = :id;

-- name: spawned
SELECT 1 AS found FROM spawns WHERE agent_id = CAST(:id AS TEXT);

-- name: worktree
SELECT status FROM worktrees WHERE name = :name;

-- name: definition
SELECT id, path FROM definitions
WHERE (id = :id OR name = :wanted OR path = :wanted) AND deleted_at IS NULL
ORDER BY path, seen_at DESC;

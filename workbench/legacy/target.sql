-- name: ids
SELECT 'projects' AS place, id, created_at FROM projects
UNION ALL SELECT 'sessions', id, created_at FROM sessions
UNION ALL SELECT 'teams', id, created_at FROM teams
UNION ALL SELECT 'agents', id, registered_at FROM agents
UNION ALL SELECT 'contexts', id, created_at FROM contexts;

-- name: names
SELECT 'projects' AS place, '' AS parent, name FROM projects WHERE deleted_at IS NULL
UNION ALL SELECT 'sessions', project_id, name FROM sessions WHERE deleted_at IS NULL
UNION ALL SELECT 'teams', COALESCE(session_id, ''), name FROM teams WHERE deleted_at IS NULL;

-- name: agent_ids
SELECT assigned_agent_id AS id FROM agents;

-- name: numbers
SELECT session_id, sequence_number FROM contexts WHERE session_id IS NOT NULL AND sequence_number IS NOT NULL;

-- name: sessions
SELECT id, project_id, contexts FROM sessions;

-- name: add_project
INSERT INTO projects (id, name, description, created_at, updated_at, deleted_at)
VALUES (:id, :name, :description, :created_at, :updated_at, :deleted_at);

-- name: add_session
INSERT INTO sessions (id, project_id, name, description, created_at, updated_at, deleted_at)
VALUES (:id, :project_id, :name, :description, :created_at, :updated_at, :deleted_at);

-- name: add_team
INSERT INTO teams (id, session_id, name, description, created_at, updated_at, deleted_at)
VALUES (:id, :session_id, :name, :description, :created_at, :updated_at, :deleted_at);

-- name: add_agent
INSERT INTO agents (
    id, assigned_agent_id, name, registration_status, token_hash, id_only, role, tool, access_level, capabilities,
    session_id, team_id, registered_at, last_heartbeat, deleted_at
) VALUES (
    :id, :agent_id, :name, :registration_status, :token_hash, :id_only, 'worker', :tool, :access_level, :capabilities,
    :session_id, :team_id, :created_at, :last_heartbeat, :deleted_at
);

-- name: add_context
INSERT INTO contexts (
    id, project_id, session_id, agent_id, sequence_number, title, content, metadata, created_at, updated_at, deleted_at
) VALUES (
    :id, :project_id, :session_id, :agent_id, :sequence_number, :title, :content, :metadata, :created_at, :updated_at,
    :deleted_at
);

-- name: count_contexts
UPDATE sessions SET contexts = :last WHERE id = :id;

-- name: projects
SELECT id, name, description, created_at, updated_at FROM projects
WHERE id > :after AND deleted_at IS NULL ORDER BY id LIMIT :limit;

-- name: sessions
SELECT s.id, s.project_id, p.name AS project, s.name, s.description, s.created_at, s.updated_at
FROM sessions s JOIN projects p ON p.id = s.project_id
WHERE s.id > :after AND COALESCE(s.deleted_at, p.deleted_at) IS NULL ORDER BY s.id LIMIT :limit;

-- name: teams
SELECT t.id, t.session_id, s.name AS session, t.name, t.description, t.created_at, t.updated_at
FROM teams t LEFT JOIN sessions s ON s.id = t.session_id LEFT JOIN projects p ON p.id = s.project_id
WHERE t.id > :after AND COALESCE(t.deleted_at, s.deleted_at, p.deleted_at) IS NULL ORDER BY t.id LIMIT :limit;

-- name: contexts
SELECT c.number, c.id, COALESCE(s.project_id, c.project_id) AS project_id, c.session_id, s.name AS session,
    c.sequence_number, a.assigned_agent_id AS agent_id, c.title, c.content, c.metadata, c.created_at, c.updated_at
FROM contexts c
LEFT JOIN sessions s ON s.id = c.session_id
LEFT JOIN projects p ON p.id = COALESCE(s.project_id, c.project_id)
LEFT JOIN agents a ON a.id = c.agent_id
WHERE c.number > :after AND COALESCE(c.deleted_at, s.deleted_at, p.deleted_at) IS NULL
ORDER BY c.number LIMIT :limit;

-- name: agents
SELECT id, assigned_agent_id AS agent_id, name, registration_status, persona_id, role, tool, access_level,
    session_id, session, team_id, team, assigned_worktree AS worktree, parent, capabilities, client, address,
    expires_at, registered_at, last_heartbeat
FROM agents_seen WHERE id > :after AND deleted_at IS NULL ORDER BY id LIMIT :limit;

-- name: events
SELECT id, at, kind, actor, subject, session, data FROM events WHERE id > :after ORDER BY id LIMIT :limit;

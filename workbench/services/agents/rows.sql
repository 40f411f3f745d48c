-- name: by_id
SELECT * FROM agents_seen WHERE id = :id;

-- name: by_agent_id
SELECT * FROM agents_seen WHERE assigned_agent_id = :agent_id AND deleted_at IS NULL;

-- name: in_session
SELECT session_id FROM agents WHERE id = :id;

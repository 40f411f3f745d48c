-- name: deleted_one
SELECT id, session_id FROM agents WHERE assigned_agent_id = :agent_id AND deleted_at IS NOT NULL;

-- name: set_token
UPDATE agents SET token_hash = :token_hash, id_only = 0 WHERE id = :id;

-- name: restore
UPDATE agents SET deleted_at = NULL WHERE id = :id;

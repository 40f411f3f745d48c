-- name: by_token
SELECT * FROM callers WHERE token_hash = :token_hash;

-- name: as_caller
SELECT * FROM callers WHERE id = :id;

-- name: by_name
SELECT * FROM callers WHERE assigned_agent_id = :agent_id;

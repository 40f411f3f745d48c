-- part: caller
SELECT c.*, a.capabilities FROM callers c JOIN agents a ON a.id = c.id

-- name: by_token
{{caller}} WHERE c.token_hash = :token_hash;

-- name: as_caller
{{caller}} WHERE c.id = :id;

-- name: by_name
{{caller}} WHERE c.assigned_agent_id = :agent_id;

-- name: set_token
UPDATE attempt_work SET model_token_hash = :token_hash, model_providers = :providers
WHERE task_id = :task_id AND attempt = :attempt;

-- name: by_token
SELECT w.task_id, w.attempt, w.agent_id, w.model_providers, x.ended_at, a.assigned_agent_id AS agent_name
FROM attempt_work w
JOIN task_attempts x ON x.task_id = w.task_id AND x.attempt = w.attempt
JOIN agents a ON a.id = w.agent_id
WHERE w.model_token_hash = :token_hash;

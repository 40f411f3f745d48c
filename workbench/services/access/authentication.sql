-- part: caller
SELECT c.*, a.name, a.capabilities, a.definition_id, a.self_tools, a.may_define, a.tools,
    CASE WHEN c.registration_status = 'rejected' THEN (
        SELECT p.reason FROM approvals p WHERE p.subject = 'agent:' || c.id AND p.kind = 'registration'
        ORDER BY p.id DESC LIMIT 1
    ) END AS rejection
FROM callers c JOIN agents a ON a.id = c.id

-- name: by_token
{{caller}} WHERE c.token_hash = :token_hash;

-- name: as_caller
{{caller}} WHERE c.id = :id;

-- name: by_attempt_token
-- The attempt whose command has a token.
SELECT w.agent_id, w.task_id, w.attempt, x.ended_at FROM attempt_work w
JOIN task_attempts x ON x.task_id = w.task_id AND x.attempt = w.attempt
WHERE w.token_hash = :token_hash;

-- name: by_name
{{caller}} WHERE c.assigned_agent_id = :agent_id;

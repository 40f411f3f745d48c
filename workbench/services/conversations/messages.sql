-- part: columns
SELECT m.id, m.conversation_id, m.number, m.role, m.state, m.content, m.parts, m.model, m.definition_hash,
    m.prompt_hash, m.include, m.end_reason AS "end", m.cut_at, m.error_code, m.error, m.input_tokens, m.output_tokens,
    m.requests, m.unmeasured, m.cost_usd, m.created_at, m.ended_at, m.replaced_at
FROM messages m

-- name: page_before
{{columns}}
WHERE m.conversation_id = :conversation AND m.number < :before
  AND (CAST(:replaced AS {{big}}) = 1 OR m.replaced_at IS NULL)
ORDER BY m.number DESC LIMIT :limit;

-- name: get
{{columns}}
WHERE m.id = :id;

-- name: last
{{columns}}
WHERE m.conversation_id = :conversation AND m.replaced_at IS NULL ORDER BY m.number DESC LIMIT 1;

-- name: add
INSERT INTO messages (id, conversation_id, number, role, state, content, server, created_at)
SELECT :id, :conversation, COALESCE(MAX(number), 0) + 1, :role, :state, :content, :server, :now
FROM messages WHERE conversation_id = :conversation;

-- name: replace
UPDATE messages SET replaced_at = :now WHERE id = :id;

-- name: note_model
UPDATE messages SET model = :model, definition_hash = :hash, prompt_hash = :prompt_hash, include = :include WHERE id = :id;

-- name: end
UPDATE messages SET state = :state, content = :content, parts = :parts, history = :history, error_code = :error_code,
    error = :error, input_tokens = :input_tokens, output_tokens = :output_tokens, requests = :requests,
    unmeasured = :unmeasured, cost_usd = :cost_usd, end_reason = :end, cut_at = :cut_at, ended_at = :now
WHERE id = :id AND state = 'running';

-- name: running
SELECT id, conversation_id, server, model FROM messages WHERE state = 'running';

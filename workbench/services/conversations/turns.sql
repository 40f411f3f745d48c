-- part: columns
SELECT t.id, t.conversation_id, t.number, t.role, t.state, t.content, t.parts, t.model, t.definition_hash,
    t.prompt_hash, t.include, t.end_reason AS "end", t.cut_at, t.error_code, t.error, t.input_tokens, t.output_tokens,
    (SELECT SUM(r.cached_tokens) FROM model_requests r WHERE r.turn_id = t.id) AS cached_tokens,
    (SELECT SUM(r.thinking_tokens) FROM model_requests r WHERE r.turn_id = t.id) AS thinking_tokens,
    (SELECT r.first_token_seconds FROM model_requests r
        WHERE r.turn_id = t.id AND r.purpose = 'answer' AND r.first_token_seconds IS NOT NULL
        ORDER BY r.number LIMIT 1) AS first_token_seconds,
    t.requests, t.unmeasured, t.cost_usd, t.created_at, t.ended_at, t.replaced_at
FROM turns t

-- name: page_before
{{columns}}
WHERE t.conversation_id = :conversation AND t.number < :before
  AND (CAST(:replaced AS {{big}}) = 1 OR t.replaced_at IS NULL)
ORDER BY t.number DESC LIMIT :limit;

-- name: get
{{columns}}
WHERE t.id = :id;

-- name: last
{{columns}}
WHERE t.conversation_id = :conversation AND t.replaced_at IS NULL ORDER BY t.number DESC LIMIT 1;

-- name: add
INSERT INTO turns (id, conversation_id, number, role, state, content, server, created_at)
SELECT :id, :conversation, COALESCE(MAX(number), 0) + 1, :role, :state, :content, :server, :now
FROM turns WHERE conversation_id = :conversation;

-- name: replace
UPDATE turns SET replaced_at = :now WHERE id = :id;

-- name: note_model
UPDATE turns SET model = :model, definition_hash = :hash, prompt_hash = :prompt_hash, include = :include WHERE id = :id;

-- name: end
UPDATE turns SET state = :state, content = :content, parts = :parts, history = :history, error_code = :error_code,
    error = :error, input_tokens = :input_tokens, output_tokens = :output_tokens, requests = :requests,
    unmeasured = :unmeasured, cost_usd = :cost_usd, end_reason = :end, cut_at = :cut_at, ended_at = :now
WHERE id = :id AND state = 'running';

-- name: running
SELECT id, conversation_id, server, model FROM turns WHERE state = 'running';

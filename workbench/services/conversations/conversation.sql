-- part: columns
SELECT c.id, c.title, d.name AS definition, c.definition_id, c.definition_path, c.model, c.include, c.tools, c.limits,
    c.frames, c.created_at, c.updated_at,
    (SELECT COUNT(*) FROM turns t WHERE t.conversation_id = c.id AND t.replaced_at IS NULL) AS turns,
    (SELECT t.id FROM turns t WHERE t.conversation_id = c.id AND t.state = 'running') AS answer_id,
    (SELECT COUNT(*) FROM turns t WHERE t.conversation_id = c.id AND t.role = 'assistant') AS answers,
    (SELECT SUM(t.input_tokens) FROM turns t WHERE t.conversation_id = c.id) AS input_tokens,
    (SELECT SUM(t.output_tokens) FROM turns t WHERE t.conversation_id = c.id) AS output_tokens,
    (SELECT SUM(r.cached_tokens) FROM model_requests r WHERE r.conversation_id = c.id) AS cached_tokens,
    (SELECT SUM(r.thinking_tokens) FROM model_requests r WHERE r.conversation_id = c.id) AS thinking_tokens,
    (SELECT SUM(t.requests) FROM turns t WHERE t.conversation_id = c.id) AS requests,
    (SELECT SUM(t.cost_usd) FROM turns t WHERE t.conversation_id = c.id) AS cost_usd,
    (SELECT COUNT(*) FROM turns t
        WHERE t.conversation_id = c.id AND t.requests > 0
            AND (t.input_tokens IS NULL OR t.unmeasured > 0)) AS unmeasured,
    (SELECT COUNT(*) FROM turns t
        WHERE t.conversation_id = c.id AND t.requests > 0 AND t.cost_usd IS NULL
            AND (t.state = 'completed' OR t.requests > COALESCE(t.unmeasured, 0))) AS unpriced
FROM conversations c
LEFT JOIN definitions d ON d.id = c.definition_id

-- name: get
{{columns}}
WHERE c.id = :id;

-- name: list
{{columns}}
WHERE (c.updated_at < :before_at OR (c.updated_at = :before_at AND c.id < :before_id))
  AND (CAST(:search AS TEXT) IS NULL OR LOWER(c.title) LIKE LOWER(:search) ESCAPE '!'
       OR LOWER(d.name) LIKE LOWER(:search) ESCAPE '!')
ORDER BY c.updated_at DESC, c.id DESC LIMIT :limit;

-- name: add
INSERT INTO conversations (
    id, title, definition_id, definition_path, model, include, tools, limits, created_at, updated_at
) VALUES (:id, :title, :definition_id, :definition_path, :model, :include, :tools, :limits, :now, :now);

-- name: update
UPDATE conversations SET title = :title, model = :model, include = :include, tools = :tools, limits = :limits,
    updated_at = :now
WHERE id = :id;

-- name: touch
UPDATE conversations SET updated_at = :now, title = CASE WHEN title = '' THEN :title ELSE title END WHERE id = :id;

-- name: delete_frames
DELETE FROM chat_frames WHERE conversation_id = :id;

-- name: delete_requests
DELETE FROM model_requests WHERE conversation_id = :id;

-- name: delete_turns
DELETE FROM turns WHERE conversation_id = :id;

-- name: delete
DELETE FROM conversations WHERE id = :id;

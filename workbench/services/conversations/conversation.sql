-- part: columns
SELECT c.id, c.title, d.name AS definition, c.definition_id, c.definition_path, c.model, c.include, c.tools, c.limits,
    c.frames, c.created_at, c.updated_at,
    (SELECT COUNT(*) FROM messages m WHERE m.conversation_id = c.id AND m.replaced_at IS NULL) AS messages,
    (SELECT m.id FROM messages m WHERE m.conversation_id = c.id AND m.state = 'running') AS answer_id,
    (SELECT COUNT(*) FROM messages m WHERE m.conversation_id = c.id AND m.role = 'assistant') AS answers,
    (SELECT SUM(m.input_tokens) FROM messages m WHERE m.conversation_id = c.id) AS input_tokens,
    (SELECT SUM(m.output_tokens) FROM messages m WHERE m.conversation_id = c.id) AS output_tokens,
    (SELECT SUM(m.requests) FROM messages m WHERE m.conversation_id = c.id) AS requests,
    (SELECT SUM(m.cost_usd) FROM messages m WHERE m.conversation_id = c.id) AS cost_usd,
    (SELECT COUNT(*) FROM messages m
        WHERE m.conversation_id = c.id AND m.requests > 0
            AND (m.input_tokens IS NULL OR m.unmeasured > 0)) AS unmeasured,
    (SELECT COUNT(*) FROM messages m
        WHERE m.conversation_id = c.id AND m.requests > 0 AND m.cost_usd IS NULL
            AND (m.state = 'completed' OR m.requests > COALESCE(m.unmeasured, 0))) AS unpriced
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

-- name: delete_messages
DELETE FROM messages WHERE conversation_id = :id;

-- name: delete
DELETE FROM conversations WHERE id = :id;

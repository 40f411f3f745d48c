-- name: forget_histories
UPDATE messages SET history = NULL
WHERE conversation_id = :conversation AND history IS NOT NULL AND id NOT IN (
    SELECT id FROM messages
    WHERE conversation_id = :conversation AND history IS NOT NULL AND replaced_at IS NULL
    ORDER BY number DESC LIMIT 2
);

-- name: touch
UPDATE conversations SET updated_at = :now WHERE id = :conversation;

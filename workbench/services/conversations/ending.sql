-- name: forget_histories
UPDATE turns SET history = NULL
WHERE conversation_id = :conversation AND history IS NOT NULL AND id NOT IN (
    SELECT id FROM turns
    WHERE conversation_id = :conversation AND history IS NOT NULL AND replaced_at IS NULL
    ORDER BY number DESC LIMIT 2
);

-- name: touch
UPDATE conversations SET updated_at = :now WHERE id = :conversation;

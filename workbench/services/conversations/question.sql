-- name: before
SELECT m.id, m.role, m.content, m.history FROM messages m
WHERE m.conversation_id = :conversation AND m.replaced_at IS NULL
  AND m.number < (SELECT number FROM messages WHERE id = :message)
ORDER BY m.number;

-- name: before
SELECT t.id, t.role, t.content, t.history FROM turns t
WHERE t.conversation_id = :conversation AND t.replaced_at IS NULL
  AND t.number < (SELECT number FROM turns WHERE id = :turn)
ORDER BY t.number;

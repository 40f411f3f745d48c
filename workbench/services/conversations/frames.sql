-- name: after
SELECT number, message_id, kind, data, at FROM chat_frames
WHERE conversation_id = :conversation AND number > :after ORDER BY number LIMIT :limit;

-- name: of_message
SELECT kind, data FROM chat_frames WHERE message_id = :message ORDER BY number;

-- name: count
UPDATE conversations SET frames = frames + :count
WHERE id = :conversation
RETURNING frames;

-- name: is_running
SELECT 1 AS yes FROM messages WHERE id = :message AND state = 'running';

-- name: add
INSERT INTO chat_frames (conversation_id, number, message_id, kind, data, at)
VALUES (:conversation, :number, :message, :kind, :data, :now);

-- name: after
SELECT number, turn_id, kind, data, at FROM chat_frames
WHERE conversation_id = :conversation AND number > :after ORDER BY number LIMIT :limit;

-- name: of_turn
SELECT kind, data FROM chat_frames WHERE turn_id = :turn ORDER BY number;

-- name: count
UPDATE conversations SET frames = frames + :count
WHERE id = :conversation
RETURNING frames;

-- name: is_running
SELECT 1 AS yes FROM turns WHERE id = :turn AND state = 'running';

-- name: add
INSERT INTO chat_frames (conversation_id, number, turn_id, kind, data, at)
VALUES (:conversation, :number, :turn, :kind, :data, :now);

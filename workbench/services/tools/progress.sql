-- name: note
UPDATE tool_calls SET progress = CAST(:progress AS {{real}}), progress_total = CAST(:total AS {{real}}),
    progress_message = CAST(:message AS TEXT)
WHERE id = :id AND ended_at IS NULL;

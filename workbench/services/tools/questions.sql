-- name: process_of
SELECT 1 AS found FROM processes WHERE agent_id = CAST(:agent AS TEXT) AND ended_at IS NULL;

-- name: unfinished
SELECT id, runner, approval_id FROM tool_calls WHERE ended_at IS NULL ORDER BY id;

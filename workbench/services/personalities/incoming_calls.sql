-- name: recorded
SELECT id FROM tool_calls WHERE origin_node = :node AND origin_call = :call LIMIT 1;

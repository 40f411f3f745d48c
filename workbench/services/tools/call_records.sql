-- part: columns
c.id AS call_id, c.tool_name, c.source, c.kind, c.server, c.offered_by, c.offerer_name, c.configuration,
    c.version, c.caller, a.assigned_agent_id AS agent_id, c.task_id,
    c.attempt, c.conversation_id, c.definition_id, c.definition_hash, c.origin_node, c.origin_call, c.origin_caller, c.state, c.error_code, c.approval_id,
    c.requested_at, c.started_at, c.ended_at,
    (COALESCE(c.started_at, c.ended_at) - c.requested_at) / 1000 AS wait_ms,
    (c.ended_at - c.started_at) / 1000 AS duration_ms,
    c.progress, c.progress_total, c.progress_message, c.input_tokens, c.output_tokens, c.cost_usd,
    substr(c.arguments, 1, :shown) AS tool_input, substr(c.result, 1, :shown) AS tool_result

-- name: list
SELECT {{columns}}
FROM tool_calls c LEFT JOIN agents a ON a.id = c.agent_id
WHERE c.id < :before
  AND (CAST(:own AS TEXT) IS NULL OR c.agent_id = :own)
  AND (CAST(:tool AS TEXT) IS NULL OR c.tool_name = :tool)
  AND (CAST(:source AS TEXT) IS NULL OR c.source = :source)
  AND (CAST(:server AS TEXT) IS NULL OR c.server = :server)
  AND (CAST(:state AS TEXT) IS NULL OR c.state = :state OR (:state = 'open' AND c.ended_at IS NULL))
  AND (CAST(:origin AS TEXT) IS NULL OR c.origin_node = :origin)
  AND (CAST(:agent AS TEXT) IS NULL OR a.assigned_agent_id = :agent)
  AND (CAST(:task AS {{big}}) IS NULL OR c.task_id = :task)
  AND (CAST(:conversation AS TEXT) IS NULL OR c.conversation_id = :conversation)
ORDER BY c.id DESC LIMIT :limit;

-- name: get
SELECT {{columns}}, c.arguments, c.result
FROM tool_calls c LEFT JOIN agents a ON a.id = c.agent_id
WHERE c.id = :id AND (CAST(:own AS TEXT) IS NULL OR c.agent_id = :own);

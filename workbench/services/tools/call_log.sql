-- name: add
-- The task is the one that the agent has begun last.
INSERT INTO tool_calls (id, tool_name, source, kind, server, offered_by, offerer_name, configuration, version, caller, agent_id, task_id, attempt,
    conversation_id, definition_id, definition_hash, origin_node, origin_call, origin_caller, arguments, state,
    approval_id, runner, requested_at, started_at)
SELECT :id, :tool, :source, :kind, CAST(:server AS TEXT), :offerer, :offerer_name, CAST(:configuration AS TEXT),
    CAST(:version AS TEXT), :caller, a.id, k.task_id, k.attempt,
    CAST(:conversation AS TEXT), CAST(:definition AS TEXT), COALESCE(CAST(:hash AS TEXT), a.definition_hash),
    CAST(:origin_node AS TEXT), CAST(:origin_call AS TEXT), CAST(:origin_caller AS TEXT), :arguments, :state,
    CAST(:approval AS {{big}}), :runner, CAST(:now AS {{big}}), CAST(:started AS {{big}})
FROM (SELECT 1 AS one) x
LEFT JOIN agents a ON a.id = CAST(:agent AS TEXT)
LEFT JOIN task_status k ON k.task_id = (SELECT MAX(h.task_id) FROM task_status h
    WHERE h.assigned_agent_id = a.id AND h.status IN ('claimed', 'in_progress'));

-- name: start
UPDATE tool_calls SET state = 'running', started_at = :now, offerer_name = :offerer_name,
    version = CAST(:version AS TEXT)
WHERE id = :id AND ended_at IS NULL;

-- name: end
UPDATE tool_calls SET state = :state, result = CAST(:result AS TEXT), error_code = CAST(:code AS TEXT), ended_at = :now,
    version = COALESCE(CAST(:version AS TEXT), version), input_tokens = CAST(:input AS {{big}}),
    output_tokens = CAST(:output AS {{big}}), cost_usd = CAST(:cost AS {{real}}),
    progress = CASE WHEN CAST(:reported AS {{big}}) = 1 THEN CAST(:progress AS {{real}}) ELSE progress END,
    progress_total = CASE WHEN CAST(:reported AS {{big}}) = 1 THEN CAST(:total AS {{real}}) ELSE progress_total END,
    progress_message = CASE WHEN CAST(:reported AS {{big}}) = 1 THEN CAST(:message AS TEXT) ELSE progress_message END
WHERE id = :id AND ended_at IS NULL;

-- name: get
SELECT c.id, c.tool_name, c.source, c.kind, c.server, c.offered_by, c.offerer_name, c.configuration,
    c.version, c.agent_id, c.task_id, c.conversation_id, c.approval_id,
    c.origin_node, c.origin_caller, c.arguments, c.started_at, c.ended_at, a.assigned_agent_id AS agent, a.session_id
FROM tool_calls c LEFT JOIN agents a ON a.id = c.agent_id
WHERE c.id = :id;

-- name: unfinished
SELECT id, runner, approval_id FROM tool_calls WHERE ended_at IS NULL ORDER BY id;

-- part: sums
SELECT CASE :by WHEN 'agent' THEN COALESCE(a.assigned_agent_id, 'the operator') WHEN 'task' THEN CAST(x.task_id AS TEXT)
        WHEN 'attempt' THEN CAST(x.task_id AS TEXT) || '.' || CAST(x.attempt AS TEXT)
        WHEN 'model' THEN x.model WHEN 'provider' THEN x.provider WHEN 'plan' THEN x.plan WHEN 'definition' THEN d.name
        WHEN 'session' THEN s.name WHEN 'persona' THEN x.persona_id WHEN 'run' THEN CAST(x.run_id AS TEXT)
        ELSE CAST(x.at / 86400000000 AS TEXT) END AS name,
    CASE WHEN MIN(x.provider) = MAX(x.provider) THEN MIN(x.provider) END AS provider,
    CASE WHEN MIN(x.model) = MAX(x.model) THEN MIN(x.model) END AS model,
    COUNT(*) AS requests, SUM(CASE WHEN x.cost_usd IS NULL AND x.input_tokens IS NOT NULL THEN 1 ELSE 0 END) AS unpriced,
    SUM(x.is_estimated) AS estimated, SUM(x.input_tokens) AS input_tokens, SUM(x.cached_tokens) AS cached_tokens,
    SUM(COALESCE(x.cache_write_tokens, 0) + COALESCE(x.cache_write_hour_tokens, 0)) AS cache_write_tokens,
    SUM(x.output_tokens) AS output_tokens, SUM(x.reasoning_tokens) AS reasoning_tokens, SUM(x.cost_usd) AS cost_usd,
    MAX(x.at) AS last_at
FROM spending x LEFT JOIN agents a ON a.id = x.agent_id LEFT JOIN definitions d ON d.id = x.definition_id
    LEFT JOIN sessions s ON s.id = x.session_id
WHERE x.at >= :since
    AND x.plan IS NOT DISTINCT FROM COALESCE(CAST(:plan AS TEXT), x.plan)
    AND (CAST(:agent AS TEXT) IS NULL OR a.assigned_agent_id = CAST(:agent AS TEXT))

-- name: add
-- One request. What its task and its attempt say about it is kept with it.
INSERT INTO spending (
    at, source, provider, model, agent_id, task_id, attempt, plan, session_id, persona_id, run_id, definition_id,
    definition_hash, conversation_id, status, error_code, seconds, first_byte_seconds, input_tokens, cached_tokens,
    cache_write_tokens, cache_write_hour_tokens, output_tokens, reasoning_tokens, is_cut, is_estimated, cost_usd,
    report
) VALUES (
    :at, :source, :provider, :model, :agent, CAST(:task_id AS {{big}}), CAST(:attempt AS {{big}}),
    CAST(:plan AS TEXT), CAST(:session_id AS TEXT), CAST(:persona_id AS TEXT), CAST(:run_id AS {{big}}),
    COALESCE((SELECT definition_id FROM task_attempts WHERE task_id = :task_id AND attempt = :attempt),
        (SELECT definition_id FROM agents WHERE id = :agent)),
    (SELECT definition_hash FROM task_attempts WHERE task_id = :task_id AND attempt = :attempt),
    :conversation, CAST(:status AS {{big}}), :error_code, :seconds, :first_byte_seconds,
    CAST(:input AS {{big}}), CAST(:cached AS {{big}}), CAST(:cache_write AS {{big}}),
    CAST(:cache_write_hour AS {{big}}), CAST(:output AS {{big}}), CAST(:reasoning AS {{big}}), :is_cut, :is_estimated,
    :cost_usd, CAST(:report AS TEXT)
);

-- name: attempted
SELECT task_id FROM task_attempts WHERE task_id = :task_id AND agent_id = :agent
    AND attempt = COALESCE(CAST(:attempt AS {{big}}), attempt) LIMIT 1;

-- name: has_run
SELECT id FROM runs WHERE id = :run_id AND (:everything = 1 OR session_id = :session);

-- name: costs
{{sums}} GROUP BY 1 ORDER BY 1 NULLS FIRST;

-- name: costs_of_task
{{sums}} AND x.task_id = :task_id GROUP BY 1 ORDER BY 1 NULLS FIRST;

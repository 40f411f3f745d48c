-- part: used
CAST(SUM(s.input_tokens) AS {{big}}) AS input_tokens, CAST(SUM(s.cached_tokens) AS {{big}}) AS cached_tokens,
    CAST(SUM(s.cache_write_tokens) AS {{big}}) AS cache_write_tokens,
    CAST(SUM(s.cache_write_hour_tokens) AS {{big}}) AS cache_write_hour_tokens,
    CAST(SUM(s.output_tokens) AS {{big}}) AS output_tokens, CAST(SUM(s.reasoning_tokens) AS {{big}}) AS reasoning_tokens,
    SUM(s.cost_usd) AS cost_usd, COUNT(s.id) AS requests

-- name: place
SELECT t.*, (SELECT COALESCE(MAX(id), 0) FROM events) AS last_event,
    (SELECT COALESCE(MAX(id), 0) FROM spending) AS last_request
FROM telemetry t;

-- name: behind
SELECT t.spans, t.refused, t.exported_at, t.failed_at, t.error_code, t.error,
    (SELECT COUNT(*) FROM events e WHERE e.id > t.event_id
        AND e.kind IN (SELECT k.value FROM {{rows_of kinds}} AS k))
    + (SELECT COUNT(*) FROM spending s WHERE s.id > t.spending_id) AS behind
FROM telemetry t;

-- name: begin
-- A project tells what happens from when a collector is set.
INSERT INTO telemetry (one, seed, event_id, spending_id, totals, since)
SELECT 1, CAST(:seed AS TEXT), (SELECT COALESCE(MAX(id), 0) FROM events), (SELECT COALESCE(MAX(id), 0) FROM spending), '{}',
    CAST(:now AS {{big}})
FROM (SELECT 1 AS one) x WHERE TRUE ON CONFLICT (one) DO NOTHING;

-- name: advance
-- Unless another server has told it meanwhile.
UPDATE telemetry SET event_id = :event_id, spending_id = :spending_id, totals = :totals, spans = spans + :spans,
    refused = refused + :refused, exported_at = :now, failures = 0, error_code = CAST(:code AS TEXT),
    error = CAST(:error AS TEXT), failed_at = CASE WHEN CAST(:code AS TEXT) IS NULL THEN failed_at ELSE :now END
WHERE event_id = :event_before AND spending_id = :spending_before;

-- name: told_metrics
-- What it has refused for good is still said; that it was away is not.
UPDATE telemetry SET metrics_at = :now, failures = 0,
    error_code = CASE WHEN error_code = 'TELEMETRY_REFUSED' THEN error_code END,
    error = CASE WHEN error_code = 'TELEMETRY_REFUSED' THEN error END;

-- name: fail
UPDATE telemetry SET failures = failures + 1, failed_at = :now, error_code = :code, error = :error;

-- name: ends
SELECT id, at, kind, subject FROM events WHERE id > :after AND id <= :until
    AND kind IN (SELECT k.value FROM {{rows_of kinds}} AS k)
ORDER BY id LIMIT :limit;

-- name: task
SELECT t.id, t.title, t.name, t.plan, t.persona_id, t.parent_id, t.session_id, t.created_at, k.status, k.attempt,
    EXISTS (SELECT 1 FROM events e WHERE e.subject = :subject AND e.id < :event_id
        AND e.kind IN ('task.completed', 'task.failed', 'task.cancelled')) AS ended_before
FROM tasks t JOIN task_status k ON k.task_id = t.id WHERE t.id = :task_id;

-- name: attempts
-- Those of a task that ended at a time, with the sums of their requests; without any, with what their program says.
WITH requests AS (
    SELECT s.attempt, {{used}} FROM spending s
    WHERE s.task_id = :task_id AND s.attempt IN (
        SELECT attempt FROM task_attempts WHERE task_id = :task_id AND ended_at = :at)
    GROUP BY s.attempt)
SELECT x.task_id, x.attempt, a.assigned_agent_id AS agent, x.agent_id, x.claimed_at, x.ended_at, x.outcome,
    x.error_class, x.definition_hash, x.profile, x.plan, COALESCE(r.requests, 0) AS requests,
    CASE WHEN x.input_tokens IS NULL AND x.output_tokens IS NULL THEN 0 ELSE 1 END AS told,
    CASE WHEN r.attempt IS NULL THEN x.input_tokens - COALESCE(x.cached_tokens, 0) ELSE r.input_tokens END AS input_tokens,
    CASE WHEN r.attempt IS NULL THEN x.cached_tokens ELSE r.cached_tokens END AS cached_tokens,
    r.cache_write_tokens, r.cache_write_hour_tokens, r.reasoning_tokens,
    CASE WHEN r.attempt IS NULL THEN x.output_tokens ELSE r.output_tokens END AS output_tokens,
    CASE WHEN r.attempt IS NULL THEN x.cost_usd ELSE r.cost_usd END AS cost_usd
FROM task_attempts x JOIN agents a ON a.id = x.agent_id LEFT JOIN requests r ON r.attempt = x.attempt
WHERE x.task_id = :task_id AND x.ended_at = :at ORDER BY x.attempt;

-- name: requests
SELECT s.id, s.at, s.source, s.provider, s.model, a.assigned_agent_id AS agent, s.task_id, s.attempt, s.conversation_id,
    s.status, s.error_code, s.seconds, s.first_byte_seconds, s.input_tokens, s.cached_tokens, s.cache_write_tokens,
    s.cache_write_hour_tokens, s.output_tokens, s.reasoning_tokens, s.is_cut, s.is_estimated, s.cost_usd
FROM spending s LEFT JOIN agents a ON a.id = s.agent_id WHERE s.id > :after ORDER BY s.id LIMIT :limit;

-- name: call
SELECT c.id, c.tool_name, c.kind, c.server, a.assigned_agent_id AS agent, c.task_id, c.attempt, c.conversation_id,
    c.state, c.error_code, c.requested_at, c.ended_at,
    CASE WHEN :content = 1 THEN substr(c.arguments, 1, :shown) END AS arguments,
    CASE WHEN :content = 1 THEN substr(c.result, 1, :shown) END AS result,
    (SELECT s.id FROM spending s WHERE s.task_id = c.task_id AND s.attempt = c.attempt AND s.at <= c.requested_at
        ORDER BY s.at DESC, s.id DESC LIMIT 1) AS request_id
FROM tool_calls c LEFT JOIN agents a ON a.id = c.agent_id WHERE c.id = :id AND c.ended_at IS NOT NULL;

-- name: states
SELECT status, COUNT(*) AS tasks FROM task_status GROUP BY status ORDER BY status;

-- name: agents
SELECT COUNT(*) AS running FROM processes WHERE ended_at IS NULL;

-- name: spans_of_attempts
SELECT attempt, ended_at FROM task_attempts WHERE task_id = :task_id ORDER BY attempt;

-- name: spans_of_requests
SELECT id, task_id, attempt, conversation_id FROM spending WHERE task_id = :task_id ORDER BY id LIMIT :limit;

-- name: spans_of_calls
SELECT id, task_id, attempt, conversation_id, ended_at FROM tool_calls WHERE task_id = :task_id ORDER BY id LIMIT :limit;

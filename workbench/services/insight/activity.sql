-- part: within
(SELECT * FROM task_attempts WHERE ended_at >= :since UNION ALL SELECT * FROM task_attempts WHERE ended_at IS NULL)

-- name: ended
SELECT (ended_at - CAST(:since AS {{big}})) / CAST(:width AS {{big}}) AS place, outcome, COUNT(*) AS number
FROM task_attempts WHERE ended_at >= :since GROUP BY 1, outcome;

-- name: claimed
SELECT (claimed_at - CAST(:since AS {{big}})) / CAST(:width AS {{big}}) AS place, COUNT(*) AS number
FROM {{within}} AS x WHERE claimed_at >= :since GROUP BY 1;

-- name: created
SELECT (created_at - CAST(:since AS {{big}})) / CAST(:width AS {{big}}) AS place, COUNT(*) AS number
FROM tasks WHERE created_at >= :since GROUP BY 1;

-- name: finished
SELECT (completed_at - CAST(:since AS {{big}})) / CAST(:width AS {{big}}) AS place, COUNT(*) AS number
FROM task_status WHERE completed_at >= :since GROUP BY 1;

-- name: now
SELECT
    (SELECT COUNT(*) FROM task_status WHERE status IN ('pending', 'claimed', 'in_progress')) AS open,
    (SELECT COUNT(*) FROM task_attempts WHERE ended_at IS NULL) AS running,
    (SELECT COUNT(*) FROM approvals WHERE status = 'pending') AS asked;

-- name: totals
SELECT COUNT(*) AS attempts, COUNT(DISTINCT task_id) AS tasks, COUNT(DISTINCT agent_id) AS agents,
    COALESCE(SUM(CASE WHEN outcome = 'completed' THEN 1 ELSE 0 END), 0) AS completed,
    COALESCE(SUM(CASE WHEN outcome IN ('failed', 'expired') THEN 1 ELSE 0 END), 0) AS failed
FROM {{within}} AS x;

-- name: answered
SELECT COUNT(*) AS decided, CAST(SUM(waited) AS {{big}}) AS waited, MAX(waited) AS longest
FROM (
    SELECT decided_at - created_at AS waited FROM approvals
    WHERE decided_at >= :since AND status <> 'pending' AND (person IS NOT NULL OR (status <> 'failed' AND decided_by = 'operator'))
) AS x;

-- name: decided_otherwise
SELECT COUNT(*) AS number FROM approvals
WHERE decided_at >= :since AND status <> 'pending' AND person IS NULL AND (status = 'failed' OR decided_by <> 'operator');

-- name: counted
SELECT
    (SELECT COUNT(*) FROM tool_calls WHERE id >= :first) AS calls,
    (SELECT COUNT(*) FROM spending WHERE at >= :since) AS answers;

-- name: stream
-- The attempts that are under way, and those that ended last.
SELECT x.task_id, t.title AS task, x.attempt, a.assigned_agent_id AS agent_id, x.claimed_at, x.ended_at, x.outcome
FROM (
    SELECT * FROM (SELECT * FROM task_attempts WHERE ended_at IS NULL LIMIT :most) AS open
    UNION ALL
    SELECT * FROM (SELECT * FROM task_attempts WHERE ended_at >= :since ORDER BY ended_at DESC LIMIT :most) AS ended
) AS x JOIN tasks t ON t.id = x.task_id JOIN agents a ON a.id = x.agent_id
ORDER BY x.claimed_at, x.task_id, x.attempt;

-- name: busy
SELECT a.assigned_agent_id AS agent_id, a.persona_id, a.registered_at, x.attempts, x.busy
FROM (
    SELECT agent_id, COUNT(*) AS attempts, SUM(COALESCE(ended_at, CAST(:now AS {{big}}))
        - CASE WHEN claimed_at > :since THEN claimed_at ELSE CAST(:since AS {{big}}) END) AS busy
    FROM {{within}} AS held GROUP BY agent_id
) AS x JOIN agents a ON a.id = x.agent_id
ORDER BY x.busy DESC, a.assigned_agent_id;

-- name: present
SELECT assigned_agent_id AS agent_id, persona_id, registered_at FROM agents
WHERE registration_status = 'active' AND role = 'worker' AND deleted_at IS NULL
ORDER BY registered_at DESC;

-- name: pending
SELECT id, kind, COALESCE(asker, requester) AS requester, status, created_at, decided_at FROM approvals
WHERE status = 'pending' ORDER BY id LIMIT :most;

-- name: decided
SELECT id, kind, COALESCE(asker, requester) AS requester, status, created_at, decided_at FROM approvals
WHERE decided_at >= :since AND status <> 'pending' ORDER BY decided_at DESC LIMIT :most;

-- name: calls
SELECT tool_name AS tool, state, ended_at - started_at AS spent FROM tool_calls
WHERE id >= :first ORDER BY id DESC LIMIT :most;

-- name: answers
SELECT (at - CAST(:since AS {{big}})) / CAST(:width AS {{big}}) AS place, COUNT(*) AS answers,
    SUM(input_tokens + COALESCE(cached_tokens, 0) + COALESCE(cache_write_tokens, 0)
        + COALESCE(cache_write_hour_tokens, 0)) AS input_tokens,
    SUM(output_tokens) AS output_tokens, SUM(cost_usd) AS cost_usd,
    SUM(CASE WHEN cost_usd IS NULL AND input_tokens IS NOT NULL THEN 1 ELSE 0 END) AS unpriced
FROM (SELECT * FROM spending WHERE at >= :since ORDER BY at DESC LIMIT :most) AS latest GROUP BY 1;

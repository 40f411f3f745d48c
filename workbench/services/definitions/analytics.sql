-- name: attempts
SELECT x.definition_hash AS hash, x.agent_id, x.task_id, x.outcome, x.error_class, x.claimed_at, x.started_at, x.ended_at
FROM task_attempts x WHERE x.definition_id = :id AND x.claimed_at >= :since ORDER BY x.claimed_at;

-- name: tool_calls
SELECT c.definition_hash AS hash, c.state, c.started_at, c.ended_at
FROM tool_calls c WHERE c.definition_id = :id AND c.requested_at >= :since ORDER BY c.id;

-- name: starts
-- The starts of agents that have the definition, or have had it; the data says which definition each start was with.
SELECT e.at, e.data FROM agents a
JOIN events e ON e.subject = 'agent:' || a.id
WHERE e.kind = 'agent.spawned' AND e.at >= :since
  AND (a.definition_id = :id OR a.id IN (SELECT x.agent_id FROM task_attempts x WHERE x.definition_id = :id))
ORDER BY e.id;

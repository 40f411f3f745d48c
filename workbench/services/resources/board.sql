-- name: ready
-- Tasks that could begin, were it not for what they need, or for one that is alone.
SELECT s.task_id, t.title, COALESCE(s.needs, p.needs, '') AS needs
FROM task_status s JOIN tasks t ON t.id = s.task_id LEFT JOIN personas p ON p.id = s.persona_id
WHERE s.status = 'pending' AND s.unmet = 0 AND s.not_before IS NULL AND (CAST(:alone AS {{big}}) <> 0
    OR COALESCE(s.needs, p.needs, '') IN (SELECT n.value FROM {{rows_of unmet}} AS n))
ORDER BY s.priority DESC, s.task_id LIMIT :limit;

-- name: holders
SELECT l.name, l.device, l.amount, l.task_id, l.attempt, x.claimed_at AS since, t.title, a.assigned_agent_id AS agent_id
FROM resource_leases l
JOIN task_attempts x ON x.task_id = l.task_id AND x.attempt = l.attempt
JOIN tasks t ON t.id = l.task_id
JOIN agents a ON a.id = x.agent_id
WHERE x.ended_at IS NULL AND (l.machine = :machine OR (CAST(:machine AS TEXT) IS NULL AND l.machine NOT LIKE 'elsewhere:%'))
UNION ALL
SELECT 'gpu', s.gpu, 1, NULL, NULL, NULL, NULL, a.assigned_agent_id
FROM spawns s JOIN agents a ON a.id = s.agent_id LEFT JOIN processes p ON p.agent_id = s.agent_id
WHERE s.gpu IS NOT NULL AND (CAST(:machine AS TEXT) IS NULL OR s.machine = :machine)
    AND (s.state = 'starting' OR (p.agent_id IS NOT NULL AND p.ended_at IS NULL))
ORDER BY 1, 2, 4 NULLS FIRST;

-- name: has_plan
SELECT 1 FROM tasks WHERE plan = :plan LIMIT 1;

-- name: to_do
SELECT t.id, t.title, t.persona_id, t.run IS NOT NULL AS has_command FROM tasks t JOIN task_status s ON s.task_id = t.id
WHERE t.plan = :plan AND s.status NOT IN ('completed', 'cancelled') ORDER BY t.id;

-- name: attempts
-- The newest attempts at tasks of the personas of a plan, with what requests to models cost in each.
SELECT t.title, t.persona_id AS persona, x.profile, (x.ended_at - x.claimed_at) / 1000000.0 AS seconds,
    (SELECT SUM(p.cost_usd) FROM spending p WHERE p.task_id = x.task_id AND p.attempt = x.attempt) AS usd
FROM task_attempts x JOIN tasks t ON t.id = x.task_id
WHERE x.ended_at IS NOT NULL AND x.outcome IN ('completed', 'failed')
    AND t.persona_id IN (SELECT persona_id FROM tasks WHERE plan = :plan)
ORDER BY x.ended_at DESC LIMIT :limit;

-- name: unpriced_models
-- The models whose cost was not known when agents of the personas of a plan asked them.
SELECT DISTINCT p.model FROM spending p
WHERE p.cost_usd IS NULL AND p.input_tokens IS NOT NULL AND p.model IS NOT NULL
    AND p.persona_id IN (SELECT persona_id FROM tasks WHERE plan = :plan)
ORDER BY p.model LIMIT 100;

WITH origin AS (SELECT min(claimed_at) AS zero, max(coalesce(ended_at, claimed_at)) AS latest FROM attempts)
SELECT coalesce(t.name, t.title) AS task, a.agent, a.attempt,
    date_diff('millisecond', o.zero, a.claimed_at) / 1000 AS start_s,
    date_diff('millisecond', o.zero, coalesce(a.ended_at, o.latest)) / 1000 AS end_s,
    coalesce(a.outcome, 'running') AS outcome
FROM attempts a JOIN tasks t ON t.id = a.task_id CROSS JOIN origin o
ORDER BY a.claimed_at, t.id

-- Plans may have tasks of one name, and tasks without a plan one title.
WITH origin AS (SELECT min(claimed_at) AS zero, max(coalesce(ended_at, claimed_at)) AS latest FROM attempts),
named AS (
    SELECT id, coalesce(name, title) AS short, count(*) OVER (PARTITION BY coalesce(name, title)) AS of_this_name,
        CASE WHEN name IS NULL THEN 'task ' || id ELSE plan END AS apart
    FROM tasks
)
SELECT CASE WHEN t.of_this_name > 1 THEN t.short || ' (' || t.apart || ')' ELSE t.short END AS task, a.agent, a.attempt,
    date_diff('millisecond', o.zero, a.claimed_at) / 1000 AS start_s,
    date_diff('millisecond', o.zero, coalesce(a.ended_at, o.latest)) / 1000 AS end_s,
    coalesce(a.outcome, 'running') AS outcome
FROM attempts a JOIN named t ON t.id = a.task_id CROSS JOIN origin o
ORDER BY a.claimed_at, t.id

-- name: add_events
-- Of ten events, eight are about a task and say what was done.
WITH RECURSIVE number (n) AS (
    SELECT CAST(0 AS {{big}}) WHERE CAST(:count AS {{big}}) > 0
    UNION ALL SELECT n + 1 FROM number WHERE n + 1 < CAST(:count AS {{big}})
)
INSERT INTO events (at, kind, actor, subject, session, data)
SELECT CAST(:now AS {{big}}) + n * 10000,
    CASE n % 10 WHEN 0 THEN 'task.created' WHEN 1 THEN 'task.claimed' WHEN 9 THEN 'task.completed' ELSE 'task.progress' END,
    'agent-' || (n / 10 % 30), 'task:' || (n / 10 % CAST(:tasks AS {{big}}) + 1), NULL,
    '{"attempt":1,"agent_id":"agent-' || (n / 10 % 30) || '","persona":"implementer","seconds":' || (n * 7919 % 10007 / 100.0)
    || ',"note":"the step is done, and the next begins"}'
FROM number;

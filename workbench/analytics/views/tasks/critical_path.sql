-- From the task that was completed last, back to the dependency whose completion came last before each last claim.
CREATE VIEW critical_path AS
WITH RECURSIVE last_claim AS (
    SELECT task_id, max(claimed_us) AS claimed_us FROM raw_attempts GROUP BY task_id
), latest_need AS (
    SELECT h.task_id, arg_max(d.id, d.completed_us) AS previous
    FROM held_back h
    JOIN raw_tasks d ON d.id = h.depends_on AND d.status = 'completed'
    JOIN last_claim c ON c.task_id = h.task_id AND d.completed_us <= c.claimed_us
    GROUP BY h.task_id
), path AS (
    SELECT plan, arg_max(id, completed_us) AS id, 1 AS back FROM raw_tasks WHERE status = 'completed' GROUP BY plan
    UNION ALL
    SELECT p.plan, n.previous, p.back + 1 FROM path p JOIN latest_need n ON n.task_id = p.id
), steps AS (
    SELECT p.plan, row_number() OVER w AS step, t.id, t.name, t.title, t.completed_us, t.agent_uid,
        greatest(t.created_us, coalesce(lag(t.completed_us) OVER w, 0)) AS from_us
    FROM path p JOIN raw_tasks t ON t.id = p.id WINDOW w AS (PARTITION BY p.plan ORDER BY p.back DESC)
), held AS (
    SELECT s.plan, s.id,
        sum(greatest(0, least(coalesce(x.ended_us, s.completed_us), s.completed_us) - greatest(x.claimed_us, s.from_us))) AS us
    FROM steps s JOIN raw_attempts x ON x.task_id = s.id GROUP BY s.plan, s.id
)
SELECT s.plan, s.step, s.id AS task_id, coalesce(s.name, s.title) AS task, a.agent,
    make_timestamptz(s.from_us) AS began_at, make_timestamptz(s.completed_us) AS completed_at,
    (s.completed_us - s.from_us) / 1e6 AS seconds,
    coalesce(h.us, 0) / 1e6 AS work_seconds,
    (s.completed_us - s.from_us - coalesce(h.us, 0)) / 1e6 AS wait_seconds
FROM steps s
LEFT JOIN held h ON h.id = s.id AND h.plan IS NOT DISTINCT FROM s.plan
LEFT JOIN raw_agents a ON a.id = s.agent_uid;

COMMENT ON VIEW critical_path IS 'The chain of tasks that decided when each plan was done: shorten one of them, and the plan is done earlier.';
COMMENT ON COLUMN critical_path.plan IS 'The plan; null: tasks without one.';
COMMENT ON COLUMN critical_path.step IS 'Place in the chain, from 1.';
COMMENT ON COLUMN critical_path.task_id IS 'The task.';
COMMENT ON COLUMN critical_path.task IS 'Its name in the plan, or its title.';
COMMENT ON COLUMN critical_path.agent IS 'The agent that completed it.';
COMMENT ON COLUMN critical_path.began_at IS 'When the step before was completed; of the first, when it was created.';
COMMENT ON COLUMN critical_path.completed_at IS 'When it was completed.';
COMMENT ON COLUMN critical_path.seconds IS 'What the step added to the whole.';
COMMENT ON COLUMN critical_path.work_seconds IS 'How much of it an agent held the task.';
COMMENT ON COLUMN critical_path.wait_seconds IS 'How much of it nobody did.';

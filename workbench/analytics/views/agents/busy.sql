-- Times at which an agent held several tasks count once: attempts that overlap are one interval.
CREATE VIEW busy AS
WITH latest AS (
    SELECT coalesce(max(at_us), 0) AS us FROM raw_events
), spans AS (
    SELECT x.agent_uid, x.claimed_us AS from_us, coalesce(x.ended_us, l.us) AS to_us, x.ended_us IS NULL AS is_open,
        max(coalesce(x.ended_us, l.us)) OVER earlier AS reached_us
    FROM raw_attempts x CROSS JOIN latest l
    WINDOW earlier AS (
        PARTITION BY x.agent_uid ORDER BY x.claimed_us, x.task_id, x.attempt
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
), numbered AS (
    SELECT *, count(*) FILTER (WHERE reached_us IS NULL OR from_us > reached_us) OVER (
        PARTITION BY agent_uid ORDER BY from_us, to_us ROWS UNBOUNDED PRECEDING) AS island
    FROM spans
), islands AS (
    SELECT agent_uid, island, min(from_us) AS from_us, max(to_us) AS to_us, bool_or(is_open) AS is_open, count(*) AS attempts
    FROM numbered GROUP BY agent_uid, island
)
SELECT a.agent, a.persona, make_timestamptz(i.from_us) AS began_at,
    CASE WHEN NOT i.is_open THEN make_timestamptz(i.to_us) END AS ended_at,
    (i.to_us - i.from_us) / 1e6 AS seconds, i.attempts
FROM islands i JOIN raw_agents a ON a.id = i.agent_uid;

COMMENT ON VIEW busy IS 'When agents held tasks: intervals that do not overlap.';
COMMENT ON COLUMN busy.agent IS 'The agent.';
COMMENT ON COLUMN busy.persona IS 'Its persona.';
COMMENT ON COLUMN busy.began_at IS 'When it claimed a task and held no other.';
COMMENT ON COLUMN busy.ended_at IS 'When it held none any more; null: it still does.';
COMMENT ON COLUMN busy.seconds IS 'How long; of an interval that lasts, until the last event of the project.';
COMMENT ON COLUMN busy.attempts IS 'How many attempts it made in it.';

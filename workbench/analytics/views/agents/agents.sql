CREATE VIEW agents AS
WITH admitted AS (
    SELECT substr(subject, 7) AS uid, max(decided_at) AS moment, arg_max(coalesce(person, decided_by), id) AS whom
    FROM approvals WHERE kind = 'registration' AND status = 'approved' GROUP BY uid
), departed AS (
    SELECT substr(subject, 7) AS uid, max(at_us) AS us FROM raw_events
    WHERE kind IN ('agent.deactivated', 'agent.deleted', 'agent.deregistered', 'agent.exited', 'agent.expired',
        'agent.rejected', 'agent.revoked', 'agent.terminated')
    GROUP BY uid
), work AS (
    SELECT CASE WHEN bool_or(ended_us IS NULL) THEN (SELECT max(at_us) FROM raw_events) ELSE max(ended_us) END AS until_us
    FROM raw_attempts
), found AS (
    SELECT a.*, m.moment, m.whom, CASE WHEN a.status IN ('inactive', 'rejected', 'revoked') THEN d.us END AS left_us
    FROM raw_agents a LEFT JOIN admitted m ON m.uid = a.id LEFT JOIN departed d ON d.uid = a.id
)
SELECT a.agent, a.name, a.status, a.persona, a.role, a.tool, a.worktree, a.parent, s.name AS session,
    a.definition, a.definition_hash,
    make_timestamptz(a.registered_us) AS registered_at,
    a.moment AS admitted_at,
    a.whom AS admitted_by,
    make_timestamptz(a.left_us) AS left_at,
    greatest(0, least(a.left_us, w.until_us) - epoch_us(a.moment)) / 1e6 AS here_seconds
FROM found a
CROSS JOIN work w
LEFT JOIN raw_sessions s ON s.id = a.session_id;

COMMENT ON VIEW agents IS 'Agents that have registered, also those that have left.';
COMMENT ON COLUMN agents.agent IS 'Its id: pending_… before it was admitted.';
COMMENT ON COLUMN agents.name IS 'The name that it gave.';
COMMENT ON COLUMN agents.status IS 'pending, assigned, active, inactive, rejected or revoked.';
COMMENT ON COLUMN agents.persona IS 'What kind of tasks it takes.';
COMMENT ON COLUMN agents.role IS 'worker or planner.';
COMMENT ON COLUMN agents.tool IS 'What it was granted: read or write.';
COMMENT ON COLUMN agents.worktree IS 'The worktree that it works in.';
COMMENT ON COLUMN agents.parent IS 'The agent that spawned it.';
COMMENT ON COLUMN agents.session IS 'Name of its session.';
COMMENT ON COLUMN agents.definition IS 'Name of its definition.';
COMMENT ON COLUMN agents.definition_hash IS 'Hash of the definition''s files when it was started.';
COMMENT ON COLUMN agents.registered_at IS 'When it registered.';
COMMENT ON COLUMN agents.admitted_at IS 'When it was admitted; null: not yet, or rejected.';
COMMENT ON COLUMN agents.admitted_by IS 'The person, rule:NAME or spawn that admitted it.';
COMMENT ON COLUMN agents.left_at IS 'When it became inactive, was rejected or revoked; null: it is here.';
COMMENT ON COLUMN agents.here_seconds IS 'Seconds from its admission until it left, or the last attempt of anyone ended; while an attempt runs, until the last event.';

CREATE VIEW processes AS
SELECT a.agent, p.machine, p.profile, p.pid,
    make_timestamptz(p.spawned_us) AS spawned_at,
    make_timestamptz(p.ended_us) AS ended_at,
    (p.ended_us - p.spawned_us) / 1e6 AS seconds,
    p.exit_code, p.reason
FROM raw_processes p JOIN raw_agents a ON a.id = p.agent_uid;

COMMENT ON VIEW processes IS 'Processes of agents that Workbench started; of an agent that was restarted, the last.';
COMMENT ON COLUMN processes.agent IS 'The agent.';
COMMENT ON COLUMN processes.machine IS 'The machine that it runs on; empty: it is older than names of machines.';
COMMENT ON COLUMN processes.profile IS 'The launch profile, such as script or claude.';
COMMENT ON COLUMN processes.pid IS 'Number that the system gave it.';
COMMENT ON COLUMN processes.spawned_at IS 'When it was started.';
COMMENT ON COLUMN processes.ended_at IS 'When it ended; null: it runs.';
COMMENT ON COLUMN processes.seconds IS 'Seconds that it ran.';
COMMENT ON COLUMN processes.exit_code IS 'Its exit status, or minus the signal that ended it.';
COMMENT ON COLUMN processes.reason IS 'Why it was ended.';

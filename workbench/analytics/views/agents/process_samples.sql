CREATE VIEW process_samples AS
SELECT a.agent, s.pid, make_timestamptz(s.at_us) AS sampled_at, s.cpu_seconds,
    CASE WHEN lag(s.at_us) OVER one < s.at_us
        THEN greatest(0, 100e6 * (s.cpu_seconds - lag(s.cpu_seconds) OVER one) / (s.at_us - lag(s.at_us) OVER one))
    END AS cpu_percent,
    s.memory_bytes, s.processes
FROM raw_process_samples s JOIN raw_agents a ON a.id = s.agent_uid
WINDOW one AS (PARTITION BY s.agent_uid, s.pid ORDER BY s.at_us, s.id);

COMMENT ON VIEW process_samples IS 'What agents'' processes used over time: sampled while it changes, one a minute after an hour.';
COMMENT ON COLUMN process_samples.agent IS 'The agent.';
COMMENT ON COLUMN process_samples.pid IS 'Number of its process.';
COMMENT ON COLUMN process_samples.sampled_at IS 'When this was so.';
COMMENT ON COLUMN process_samples.cpu_seconds IS 'Processor time of it and its descendants until then.';
COMMENT ON COLUMN process_samples.cpu_percent IS 'Percent of one processor since the sample before; null: it is the first.';
COMMENT ON COLUMN process_samples.memory_bytes IS 'Resident memory of it and its descendants; shared memory counts for each.';
COMMENT ON COLUMN process_samples.processes IS 'It and its descendants, in number.';

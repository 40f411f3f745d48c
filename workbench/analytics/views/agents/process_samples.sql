CREATE VIEW process_samples AS
SELECT s.kind, coalesce(a.agent, r.name, s.owner) AS name, a.agent, r.id AS run_id, s.pid,
    make_timestamptz(s.at_us) AS sampled_at, s.cpu_seconds,
    CASE WHEN lag(s.at_us) OVER one < s.at_us
        THEN greatest(0, 100e6 * (s.cpu_seconds - lag(s.cpu_seconds) OVER one) / (s.at_us - lag(s.at_us) OVER one))
    END AS cpu_percent,
    s.memory_bytes, s.processes
FROM raw_process_samples s
LEFT JOIN raw_agents a ON s.kind = 'agent' AND a.id = s.owner
LEFT JOIN raw_runs r ON s.kind = 'run' AND r.id = TRY_CAST(s.owner AS BIGINT)
WINDOW one AS (PARTITION BY s.kind, s.owner, s.pid ORDER BY s.at_us, s.id);

COMMENT ON VIEW process_samples IS 'What processes used over time: sampled while it changes, one a minute after an hour.';
COMMENT ON COLUMN process_samples.kind IS 'Whose the process is: agent, tool server (a program that Workbench started), or run (its kernel).';
COMMENT ON COLUMN process_samples.name IS 'The agent, or the name of the server or of the run.';
COMMENT ON COLUMN process_samples.agent IS 'The agent; null: it is of no agent.';
COMMENT ON COLUMN process_samples.run_id IS 'Id of the run; null: it is of no run.';
COMMENT ON COLUMN process_samples.pid IS 'Number of the process.';
COMMENT ON COLUMN process_samples.sampled_at IS 'When this was so.';
COMMENT ON COLUMN process_samples.cpu_seconds IS 'Processor time of it and its descendants until then.';
COMMENT ON COLUMN process_samples.cpu_percent IS 'Percent of one processor since the sample before; null: it is the first.';
COMMENT ON COLUMN process_samples.memory_bytes IS 'Resident memory of it and its descendants; shared memory counts for each.';
COMMENT ON COLUMN process_samples.processes IS 'It and its descendants, in number.';

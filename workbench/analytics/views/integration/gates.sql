CREATE VIEW gates AS
SELECT CAST(data->>'approval' AS BIGINT) AS approval_id, data->>'worktree' AS worktree, data->>'command' AS command,
    data->>'state' AS state, CAST(data->>'exit_code' AS BIGINT) AS exit_code, CAST(data->>'seconds' AS DOUBLE) AS seconds,
    make_timestamptz(at_us) AS ended_at, data->>'commit' AS commit_id
FROM raw_events WHERE kind = 'gate.ended';

COMMENT ON VIEW gates IS 'Runs of gates: the commands that have to pass on the result of a merge.';
COMMENT ON COLUMN gates.approval_id IS 'The integration that it was run for.';
COMMENT ON COLUMN gates.worktree IS 'The worktree to be merged.';
COMMENT ON COLUMN gates.command IS 'The command.';
COMMENT ON COLUMN gates.state IS 'passed, failed or timeout.';
COMMENT ON COLUMN gates.exit_code IS 'Its exit status; null: it was stopped or could not be run.';
COMMENT ON COLUMN gates.seconds IS 'Seconds that it ran.';
COMMENT ON COLUMN gates.ended_at IS 'When it ended.';
COMMENT ON COLUMN gates.commit_id IS 'The result of the merge that it was run on.';

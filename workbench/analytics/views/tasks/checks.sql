CREATE VIEW checks AS
SELECT task_id, attempt, CAST(command AS JSON) ->> 'run' AS command, commit_id, state, tries, exit_code,
    CAST(metrics AS JSON) AS metrics,
    make_timestamptz(asked_us) AS asked_at,
    make_timestamptz(started_us) AS started_at,
    make_timestamptz(ended_us) AS ended_at,
    (ended_us - started_us) / 1e6 AS seconds, output
FROM raw_checks;

COMMENT ON VIEW checks IS 'Checks of what attempts made: each is a command that must pass on their commit.';
COMMENT ON COLUMN checks.task_id IS 'The task.';
COMMENT ON COLUMN checks.attempt IS 'Number of the attempt at this task.';
COMMENT ON COLUMN checks.command IS 'The command: a line for the shell, or a list of words in JSON.';
COMMENT ON COLUMN checks.commit_id IS 'The commit that it ran on; null: that of the target, outside of worktrees.';
COMMENT ON COLUMN checks.state IS 'waiting, running, passed, flaky (it passed when it was run again) or failed.';
COMMENT ON COLUMN checks.tries IS 'How often it was run.';
COMMENT ON COLUMN checks.exit_code IS 'Its exit status; null: it was ended, or runs.';
COMMENT ON COLUMN checks.metrics IS 'What it measured: numbers by name, as JSON. What workers say that they measured is in the results of tasks.';
COMMENT ON COLUMN checks.asked_at IS 'When it was asked for: the attempt was said to be complete.';
COMMENT ON COLUMN checks.started_at IS 'When it was started.';
COMMENT ON COLUMN checks.ended_at IS 'When it ended; null: it has not.';
COMMENT ON COLUMN checks.seconds IS 'Seconds from its start to its end.';
COMMENT ON COLUMN checks.output IS 'The end of what it wrote.';

CREATE VIEW runs AS
SELECT id, key, name, sweep_id, sweep, parent_id, notebook, state, error_code, error, tries, session_id, git_commit,
    CAST(git_dirty AS BOOLEAN) AS git_dirty,
    output, created_by, notes,
    CASE WHEN tags IS NULL THEN [] ELSE string_split(tags, ' ') END AS tags,
    CAST(parameters AS JSON) AS parameters,
    CAST(definitions AS JSON) AS definitions,
    CAST(environment AS JSON) AS environment,
    archived_us IS NOT NULL AS archived,
    make_timestamptz(started_us) AS started_at,
    make_timestamptz(ended_us) AS ended_at,
    (ended_us - started_us) / 1e6 AS seconds
FROM raw_runs;

COMMENT ON VIEW runs IS 'Runs of experiments, those of sweeps included.';
COMMENT ON COLUMN runs.id IS 'Its number.';
COMMENT ON COLUMN runs.key IS 'What tells a run of a sweep from the others of it; else a UUID.';
COMMENT ON COLUMN runs.name IS 'Its name.';
COMMENT ON COLUMN runs.sweep_id IS 'The sweep that it is a run of.';
COMMENT ON COLUMN runs.sweep IS 'Name of that sweep.';
COMMENT ON COLUMN runs.parent_id IS 'The run within which it was started.';
COMMENT ON COLUMN runs.notebook IS 'Path of its notebook.';
COMMENT ON COLUMN runs.state IS 'running, completed, failed, cancelled or lost.';
COMMENT ON COLUMN runs.error_code IS 'Why it did not complete, as a code.';
COMMENT ON COLUMN runs.error IS 'Why it did not complete.';
COMMENT ON COLUMN runs.tries IS 'How often it was started.';
COMMENT ON COLUMN runs.session_id IS 'The session that it coordinated in.';
COMMENT ON COLUMN runs.git_commit IS 'The commit of the project when it started.';
COMMENT ON COLUMN runs.git_dirty IS 'Whether a tracked file differed from it, or git did not track the notebook.';
COMMENT ON COLUMN runs.output IS 'Path of the executed notebook.';
COMMENT ON COLUMN runs.created_by IS 'Who started it.';
COMMENT ON COLUMN runs.notes IS 'What was noted about it.';
COMMENT ON COLUMN runs.tags IS 'Its tags, as a list.';
COMMENT ON COLUMN runs.parameters IS 'Its parameters, as JSON: parameters->>''lr''.';
COMMENT ON COLUMN runs.definitions IS 'Hashes of the agent definitions that it used, by name, as JSON.';
COMMENT ON COLUMN runs.environment IS 'What it ran on, as JSON.';
COMMENT ON COLUMN runs.archived IS 'Whether it is archived.';
COMMENT ON COLUMN runs.started_at IS 'When it was started last.';
COMMENT ON COLUMN runs.ended_at IS 'When it ended.';
COMMENT ON COLUMN runs.seconds IS 'Seconds that it took.';

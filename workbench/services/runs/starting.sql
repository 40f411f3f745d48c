-- name: add
INSERT INTO runs (key, sweep_id, parent_id, name, notebook, parameters, state, session_id, git_commit, git_dirty, definitions,
    environment, output, process, machine, created_by, created_at, started_at)
VALUES (:key, :sweep, :parent, :name, :notebook, :parameters, 'running', :session, :commit, :dirty, :definitions,
    :environment, :output, :process, :machine, :by, :now, :now);

-- name: start_again
UPDATE runs SET sweep_id = :sweep, parent_id = :parent, name = :name, notebook = :notebook, parameters = :parameters, state = 'running',
    error_code = NULL, error = NULL, session_id = :session, git_commit = :commit, git_dirty = :dirty,
    definitions = :definitions, environment = :environment, output = :output, process = :process, machine = :machine, tries = tries + 1,
    metrics = 0, started_at = :now, ended_at = NULL, archived_at = NULL
WHERE id = :id;

-- name: forget_metrics
DELETE FROM run_metrics WHERE run_id = :run;

-- name: forget_latest
DELETE FROM run_latest_metrics WHERE run_id = :run;

-- name: forget_artifacts
DELETE FROM run_artifacts WHERE run_id = :run;

-- name: sweep
SELECT id FROM sweeps WHERE id = :id;

-- name: session
SELECT id FROM sessions WHERE id = :id AND deleted_at IS NULL;

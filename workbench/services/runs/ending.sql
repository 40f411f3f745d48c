-- name: end
UPDATE runs SET state = :state, error_code = CAST(:error_code AS TEXT), error = CAST(:error AS TEXT), ended_at = :now,
    output = COALESCE(CAST(:output AS TEXT), output), announced_at = recorded_at
WHERE id = :id;

-- name: watched
SELECT id, name, sweep_id, session_id, tries, process FROM runs WHERE state = 'running' AND process IS NOT NULL;

-- name: still
SELECT id FROM runs WHERE id = :id AND state = 'running' AND process = :process;

-- name: some_latest
-- An event is no place for all the values of a run that has very many.
SELECT name, value, text FROM run_latest_metrics WHERE run_id = :run ORDER BY name LIMIT 50;

-- name: end
UPDATE runs SET state = :state, error_code = CAST(:error_code AS TEXT), error = CAST(:error AS TEXT), ended_at = :now,
    output = COALESCE(CAST(:output AS TEXT), output), announced_at = recorded_at
WHERE id = :id;

-- name: know
UPDATE runs SET environment = :environment WHERE id = :id;

-- name: watched
SELECT id, name, sweep_id, session_id, tries, process FROM runs WHERE state = 'running' AND process IS NOT NULL;

-- name: still
SELECT id FROM runs WHERE id = :id AND state = 'running' AND process = :process;

-- name: some_latest
-- An event is no place for all the values of a run that has very many.
SELECT name, value, text FROM run_latest_metrics WHERE run_id = :run ORDER BY name LIMIT 50;

-- name: left
-- Agents in sessions that runs of sweeps have for themselves: a session that runs share is of another project.
SELECT DISTINCT l.agent_id
FROM (SELECT agent_id FROM processes WHERE ended_at IS NULL AND reason IS NULL
    UNION SELECT agent_id FROM spawns WHERE state IN ('queued', 'starting')) AS l
JOIN agents a ON a.id = l.agent_id
JOIN sessions s ON s.id = a.session_id
JOIN projects o ON o.id = s.project_id
JOIN runs r ON r.session_id = s.id AND r.state = 'lost'
JOIN sweeps w ON w.id = r.sweep_id AND o.name = 'sweep ' || w.name;

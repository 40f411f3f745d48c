-- name: add
INSERT INTO spawns (agent_id, profile, request, confinement, state, spawned_by, machine, asked_at)
VALUES (:agent, :profile, :request, '{"enforced": false, "missing": []}', 'queued', :parent, :machine, :now);

-- name: get
SELECT s.*, a.assigned_agent_id, a.name, a.persona_id, a.assigned_worktree, a.registration_status, a.deleted_at,
    a.definition_id, a.self_tools
FROM spawns s JOIN agents a ON a.id = s.agent_id
WHERE s.agent_id = :agent;

-- name: elsewhere
-- A worker of a machine without a clone.
SELECT w.machine, w.profile, a.assigned_agent_id, a.persona_id, a.assigned_worktree,
    (SELECT COUNT(*) FROM spawns s WHERE s.agent_id = w.agent_id) AS spawned
FROM machine_workers w JOIN agents a ON a.id = w.agent_id WHERE w.agent_id = :agent;

-- name: busy
SELECT s.agent_id, s.spawned_by FROM spawns s LEFT JOIN processes p ON p.agent_id = s.agent_id
WHERE (CAST(:machine AS TEXT) IS NULL OR s.machine = :machine)
  AND (s.state = 'starting' OR (p.agent_id IS NOT NULL AND p.ended_at IS NULL AND p.reason IS NULL));

-- name: running
SELECT s.agent_id, s.profile, s.request FROM spawns s JOIN processes p ON p.agent_id = s.agent_id
WHERE p.ended_at IS NULL AND (CAST(:machine AS TEXT) IS NULL OR s.machine = :machine);

-- name: queue
SELECT s.agent_id, s.spawned_by, a.registration_status, a.deleted_at FROM spawns s JOIN agents a ON a.id = s.agent_id
WHERE s.state = 'queued' AND (CAST(:machine AS TEXT) IS NULL OR s.machine = :machine) ORDER BY s.asked_at, s.agent_id;

-- name: queue_again
UPDATE spawns SET state = 'queued', reason = NULL, end_asked = NULL, asked_at = :now WHERE agent_id = :agent;

-- name: starting
UPDATE spawns SET state = 'starting' WHERE agent_id = :agent AND state = 'queued';

-- name: started
UPDATE spawns SET state = 'started', scratch = :scratch, confinement = :confinement
WHERE agent_id = :agent AND state = 'starting';

-- name: new_token
UPDATE agents SET token_hash = :token_hash WHERE id = :agent;

-- name: process
INSERT INTO processes (agent_id, pid, started, mark, profile, definition_hash, prompt_hash, include, spawned_at)
VALUES (:agent, :pid, :started, :mark, :profile, :definition_hash, :prompt_hash, :include, :now)
ON CONFLICT (agent_id) DO UPDATE SET pid = excluded.pid, started = excluded.started, mark = excluded.mark,
    profile = excluded.profile, definition_hash = excluded.definition_hash, prompt_hash = excluded.prompt_hash, include = excluded.include,
    spawned_at = excluded.spawned_at, ended_at = NULL, exit_code = NULL, reason = NULL;

-- name: all_spawned
SELECT agent_id, profile, request FROM spawns;

-- name: definition_contents
SELECT content FROM definition_contents;

-- name: written_logs
SELECT agent_id AS file FROM processes WHERE ended_at IS NULL
UNION ALL SELECT id AS file FROM tool_calls WHERE state IN ('waiting', 'running');

-- name: masked_records
SELECT masked_at FROM masked_records;

-- name: note_masked_records
INSERT INTO masked_records (masked_at) VALUES (:now);

-- name: take_gpu
UPDATE spawns SET gpu = CAST(:gpu AS TEXT) WHERE agent_id = :agent;

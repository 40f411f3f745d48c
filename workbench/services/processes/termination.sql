-- A process that has a reason and no end is a survivor: the system did not end it.

-- name: running_of
SELECT p.*, s.scratch, s.machine, a.assigned_agent_id FROM processes p JOIN spawns s ON s.agent_id = p.agent_id
JOIN agents a ON a.id = p.agent_id
WHERE p.agent_id = :agent AND p.ended_at IS NULL;

-- name: running
SELECT p.*, s.scratch FROM processes p
JOIN agents a ON a.id = p.agent_id
JOIN spawns s ON s.agent_id = p.agent_id
WHERE p.ended_at IS NULL AND p.reason IS NULL AND (CAST(:machine AS TEXT) IS NULL OR s.machine = :machine)
  AND (CAST(:worktree AS TEXT) IS NULL OR a.assigned_worktree = :worktree)
ORDER BY p.spawned_at;

-- name: survivors
SELECT p.*, s.scratch FROM processes p JOIN spawns s ON s.agent_id = p.agent_id
WHERE p.ended_at IS NULL AND p.reason IS NOT NULL AND (CAST(:machine AS TEXT) IS NULL OR s.machine = :machine)
ORDER BY p.spawned_at;

-- name: waiting
SELECT s.agent_id FROM spawns s JOIN agents a ON a.id = s.agent_id
WHERE s.state IN ('queued', 'starting') AND (CAST(:machine AS TEXT) IS NULL OR s.machine = :machine)
  AND (CAST(:worktree AS TEXT) IS NULL OR a.assigned_worktree = :worktree)
ORDER BY s.asked_at;

-- name: ended
UPDATE processes SET ended_at = :now, exit_code = :exit_code, reason = :reason
WHERE agent_id = :agent AND pid = :pid AND ended_at IS NULL;

-- name: survived
UPDATE processes SET reason = :reason
WHERE agent_id = :agent AND pid = :pid AND ended_at IS NULL AND reason IS NULL;

-- name: give_up
UPDATE spawns SET state = 'given_up', reason = :reason WHERE agent_id = :agent AND state IN ('queued', 'starting');

-- name: ask
UPDATE spawns SET end_asked = :reason WHERE agent_id = :agent;

-- name: asked
SELECT s.agent_id, s.end_asked FROM spawns s WHERE s.end_asked IS NOT NULL AND s.machine = :machine ORDER BY s.agent_id;

-- name: here
SELECT s.agent_id FROM spawns s WHERE s.agent_id = :agent AND (CAST(:machine AS TEXT) IS NULL OR s.machine = :machine);

-- name: new_token
UPDATE agents SET token_hash = :token_hash WHERE id = :agent;

-- name: scratch_removed
UPDATE spawns SET scratch = NULL WHERE agent_id = :agent AND scratch = :scratch;

-- name: left_scratch
SELECT s.agent_id, s.scratch FROM spawns s LEFT JOIN processes p ON p.agent_id = s.agent_id
WHERE s.scratch IS NOT NULL AND (CAST(:machine AS TEXT) IS NULL OR s.machine = :machine) AND s.state <> 'starting' AND (p.agent_id IS NULL OR p.ended_at IS NOT NULL);

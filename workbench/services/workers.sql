-- name: add
INSERT INTO processes (agent_id, pid, started, profile, log, spawned_at)
VALUES (:agent, :pid, :started, :profile, :log, :now);

-- name: of_agent
SELECT * FROM processes WHERE agent_id = :agent;

-- name: running_of
SELECT * FROM processes WHERE agent_id = :agent AND ended_at IS NULL;

-- name: running
SELECT p.* FROM processes p JOIN agents a ON a.id = p.agent_id
WHERE p.ended_at IS NULL
  AND (CAST(:worktree AS TEXT) IS NULL OR a.assigned_worktree = :worktree)
ORDER BY p.spawned_at;

-- name: ended
UPDATE processes SET ended_at = :now, exit_code = :exit_code WHERE agent_id = :agent AND ended_at IS NULL;

-- name: managed
SELECT a.* FROM agents_seen a
WHERE a.running IS NOT NULL AND a.deleted_at IS NULL
  AND (CAST(:parent AS TEXT) IS NULL OR a.parent_agent_id = :parent)
ORDER BY a.registered_at, a.id;

-- name: worktree
SELECT path, status, created_by FROM worktrees WHERE name = :name;

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
SELECT a.*, p.assigned_agent_id AS parent FROM agents a
JOIN processes x ON x.agent_id = a.id
LEFT JOIN agents p ON p.id = a.parent_agent_id
WHERE CAST(:parent AS TEXT) IS NULL OR a.parent_agent_id = :parent
ORDER BY a.registered_at, a.id;

-- name: worktree
SELECT path, status, created_by FROM worktrees WHERE name = :name;

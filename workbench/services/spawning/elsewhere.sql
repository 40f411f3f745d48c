-- name: add
INSERT INTO machine_tokens (name, token_hash, added_by, added_at) VALUES (:name, :token_hash, :by, :now)
ON CONFLICT (name) DO NOTHING;

-- name: remove
DELETE FROM machine_tokens WHERE name = :name;

-- name: by_token
SELECT name FROM machine_tokens WHERE token_hash = :token_hash;

-- name: used
UPDATE machine_tokens SET used_at = :now, facts = COALESCE(CAST(:facts AS TEXT), facts) WHERE name = :name;

-- name: list
SELECT t.name, t.added_by, t.added_at, t.used_at, t.facts, (
    SELECT COUNT(*) FROM machine_workers w JOIN agents a ON a.id = w.agent_id
    WHERE w.machine = t.name AND a.deleted_at IS NULL AND a.registration_status NOT IN ('rejected', 'revoked')
) AS workers
FROM machine_tokens t ORDER BY t.name;

-- name: workers
-- The workers of a machine that may still act.
SELECT a.assigned_agent_id AS agent_id FROM machine_workers w JOIN agents a ON a.id = w.agent_id
WHERE w.machine = :machine AND a.deleted_at IS NULL AND a.registration_status NOT IN ('rejected', 'revoked')
ORDER BY a.id;

-- name: enlist
INSERT INTO machine_workers (agent_id, machine, key_hash, profile, worktree)
VALUES (:agent, :machine, :key_hash, :profile, :worktree);

-- name: by_key
SELECT w.agent_id, w.machine, w.worktree, a.registration_status, a.deleted_at
FROM machine_workers w JOIN agents a ON a.id = w.agent_id WHERE w.key_hash = :key_hash;

-- name: forget_key
UPDATE machine_workers SET key_hash = NULL WHERE agent_id = :agent;

-- name: new_token
UPDATE agents SET token_hash = :token_hash WHERE id = :agent;

-- name: made_for
-- The open worktree that was made for a worker.
SELECT 1 AS found FROM worktrees t JOIN machine_workers w ON w.worktree = t.name
WHERE w.agent_id = :agent AND t.status = 'active' AND t.created_by = :by;

-- name: taken_names
SELECT name FROM worktrees WHERE name LIKE :prefix || '%'
UNION SELECT worktree AS name FROM machine_workers WHERE worktree LIKE :prefix || '%';

-- name: add
INSERT INTO machine_tokens (name, token_hash, added_by, added_at) VALUES (:name, :token_hash, :by, :now)
ON CONFLICT (name) DO NOTHING;

-- name: remove
DELETE FROM machine_tokens WHERE name = :name;

-- name: by_token
SELECT name FROM machine_tokens WHERE token_hash = :token_hash;

-- name: used
UPDATE machine_tokens SET used_at = :now WHERE name = :name;

-- name: list
SELECT t.name, t.added_by, t.added_at, t.used_at, (
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
INSERT INTO machine_workers (agent_id, machine) VALUES (:agent, :machine);

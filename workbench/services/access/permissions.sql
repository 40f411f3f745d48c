-- name: list
SELECT id, name, description, permissions, enabled, created_at, updated_at FROM agent_tools ORDER BY id;

-- name: get
SELECT id, name, description, permissions, enabled, created_at, updated_at FROM agent_tools WHERE id = :id;

-- name: update
UPDATE agent_tools SET enabled = COALESCE(CAST(:enabled AS {{big}}), enabled),
    permissions = COALESCE(CAST(:permissions AS TEXT), permissions),
    description = COALESCE(CAST(:description AS TEXT), description), updated_at = :now
WHERE id = :id;

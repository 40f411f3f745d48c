-- name: of_tool
SELECT permission, fingerprint, offer FROM tool_permissions WHERE tool = :tool;

-- name: forbidden
SELECT tool FROM tool_permissions WHERE permission = :never;

-- name: list
SELECT tool, permission, fingerprint, offer, decided_by, decided_at FROM tool_permissions ORDER BY tool;

-- name: set
INSERT INTO tool_permissions (tool, permission, fingerprint, offer, decided_by, decided_at)
VALUES (:tool, :permission, :fingerprint, :offer, :by, :now)
ON CONFLICT (tool) DO UPDATE SET permission = excluded.permission, fingerprint = excluded.fingerprint,
    offer = excluded.offer, decided_by = excluded.decided_by, decided_at = excluded.decided_at;

-- name: remove
DELETE FROM tool_permissions WHERE tool = :tool;

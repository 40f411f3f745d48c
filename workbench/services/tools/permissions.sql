-- name: of_tool
SELECT permission, fingerprint, offer FROM tool_permissions WHERE tool = :tool AND offered_by IN ('', :offerer)
ORDER BY offered_by DESC LIMIT 1;

-- name: forbidden
SELECT tool, offered_by, permission FROM tool_permissions
WHERE tool IN (SELECT n.tool FROM tool_permissions n WHERE n.permission = :never);

-- name: list
SELECT tool, offered_by, offerer_name, permission, fingerprint, offer, decided_by, decided_at FROM tool_permissions
ORDER BY tool, offered_by;

-- name: set
INSERT INTO tool_permissions (tool, offered_by, offerer_name, permission, fingerprint, offer, decided_by, decided_at)
VALUES (:tool, :offerer, :name, :permission, :fingerprint, :offer, :by, :now)
ON CONFLICT (tool, offered_by) DO UPDATE SET offerer_name = excluded.offerer_name, permission = excluded.permission,
    fingerprint = excluded.fingerprint,
    offer = excluded.offer, decided_by = excluded.decided_by, decided_at = excluded.decided_at;

-- name: remove
DELETE FROM tool_permissions WHERE tool = :tool;

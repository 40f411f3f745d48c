-- name: of
-- The rule for a trait, or else that for all others.
SELECT n.blocked_at, p.trait, p.permission, p.calls_per_minute
FROM koi_nodes n LEFT JOIN koi_permissions p ON p.node = n.rid AND p.trait IN (:trait, '*')
WHERE n.rid = :node
ORDER BY CASE p.trait WHEN :trait THEN 0 ELSE 1 END LIMIT 1;

-- name: set
INSERT INTO koi_permissions (node, trait, permission, calls_per_minute, decided_by, decided_at)
VALUES (:node, :trait, :permission, COALESCE(CAST(:rate AS {{big}}), :default_rate), :by, :now)
ON CONFLICT (node, trait) DO UPDATE SET permission = excluded.permission,
    calls_per_minute = COALESCE(CAST(:rate AS {{big}}), koi_permissions.calls_per_minute),
    decided_by = excluded.decided_by, decided_at = excluded.decided_at;

-- name: remove
DELETE FROM koi_permissions WHERE node = :node AND trait = :trait;

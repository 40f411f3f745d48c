-- name: known
SELECT b.rid, b.manifest_at, b.owner, b.origin, b.sha256 FROM koi_bundles b WHERE b.rid_type = :rid_type;

-- name: forgotten
SELECT rid, manifest_at, owner FROM koi_tombstones WHERE rid_type = :rid_type;

-- name: subscribes
SELECT COUNT(*) AS n FROM koi_nodes n WHERE n.rid = :node AND (n.is_relay = 1 OR EXISTS (
    SELECT 1 FROM koi_edges e WHERE e.source = :me AND e.target = n.rid AND e.rid_types LIKE '%orn:agent.personality%'));

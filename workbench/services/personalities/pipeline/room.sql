-- name: silent
-- An edge counts if the node has asked for it, or has agreed to it. This node proposes one to everybody.
SELECT s.rid, s.name FROM (
    SELECT n.rid, n.name, n.node_type, n.failures, n.last_seen,
        CASE WHEN EXISTS (SELECT 1 FROM koi_edges e WHERE e.source = :me AND e.target = n.rid)
            OR EXISTS (SELECT 1 FROM koi_edges e WHERE e.target = :me AND e.source = n.rid AND e.status = 'APPROVED')
            THEN 1 ELSE 0 END AS has_edge
    FROM koi_nodes n JOIN koi_bundles b ON b.rid = n.rid
    WHERE n.is_relay = 0 AND n.blocked_at IS NULL AND n.rid <> :source
        AND NOT EXISTS (SELECT 1 FROM koi_bundles p WHERE p.owner = n.rid AND p.rid_type = 'orn:agent.personality')
        AND NOT EXISTS (SELECT 1 FROM koi_permissions m WHERE m.node = n.rid)) s
WHERE s.has_edge = 0 OR s.failures > 0 OR (s.node_type = :partial AND s.last_seen < :since)
ORDER BY s.has_edge, s.last_seen, s.rid LIMIT 1;

-- name: drop_edge_bundles
DELETE FROM koi_bundles WHERE rid IN (SELECT e.rid FROM koi_edges e WHERE e.source = :rid OR e.target = :rid);

-- name: drop_edges
DELETE FROM koi_edges WHERE source = :rid OR target = :rid;

-- name: drop_bundle
DELETE FROM koi_bundles WHERE rid = :rid;

-- name: drop_node
DELETE FROM koi_nodes WHERE rid = :rid;

-- name: sources
SELECT n.rid, n.is_relay, b.origin, b.contents, b.changed_at, e.rid_types
FROM koi_nodes n JOIN koi_bundles b ON b.rid = n.rid
    LEFT JOIN koi_edges e ON e.source = n.rid AND e.target = :me
WHERE n.blocked_at IS NULL AND n.node_type = 'FULL' AND n.rid <> :me
ORDER BY n.rid;

-- name: refused_at
SELECT forgotten_at FROM koi_tombstones WHERE rid = :rid;

-- name: proposed
SELECT e.rid, e.target, e.edge_type, e.rid_types, n.node_type, b.contents
FROM koi_edges e JOIN koi_nodes n ON n.rid = e.target JOIN koi_bundles b ON b.rid = e.rid
WHERE e.source = :me AND e.status = 'PROPOSED' AND n.blocked_at IS NULL
ORDER BY e.rid;

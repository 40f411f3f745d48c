-- name: personalities
SELECT name, version FROM personalities ORDER BY rid;

-- name: drop_outbox
DELETE FROM koi_outbox;

-- name: drop_rejections
DELETE FROM koi_rejections;

-- name: drop_edges
DELETE FROM koi_edges;

-- name: drop_personalities
DELETE FROM personalities;

-- name: drop_bundles
DELETE FROM koi_bundles;

-- name: edges
SELECT e.rid, e.source, e.target, e.edge_type, e.status, e.rid_types FROM koi_edges e ORDER BY e.rid;

-- name: former
-- Another node that this one was: its own bundle is kept, and it is none that it has met. names: that it owns still.
SELECT b.rid, (SELECT COUNT(*) FROM own_personalities w JOIN personality_owners o ON o.name = w.name
    WHERE o.owner = b.rid) AS names
FROM koi_bundles b
WHERE b.rid_type = 'orn:koi-net.node' AND b.rid <> :me AND b.rid NOT IN (SELECT n.rid FROM koi_nodes n) LIMIT 1;

-- name: counts
SELECT (SELECT COUNT(*) FROM koi_nodes n JOIN koi_bundles b ON b.rid = n.rid) AS peers,
    (SELECT COUNT(*) FROM personalities) AS personalities,
    (SELECT COUNT(*) FROM koi_outbox) AS waiting,
    (SELECT COALESCE(SUM(r.count), 0) FROM koi_refusals r
        WHERE r.code NOT IN (SELECT value FROM {{rows_of usual}} AS usual)) AS refused;

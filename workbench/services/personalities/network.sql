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

-- name: counts
SELECT (SELECT COUNT(*) FROM koi_nodes n JOIN koi_bundles b ON b.rid = n.rid) AS peers,
    (SELECT COUNT(*) FROM personalities) AS personalities,
    (SELECT COUNT(*) FROM koi_outbox) AS waiting,
    (SELECT COALESCE(SUM(r.count), 0) FROM koi_refusals r) AS refused;

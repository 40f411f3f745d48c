-- name: list
SELECT n.rid, n.name, n.node_type, n.base_url, n.is_relay, n.first_seen, n.last_seen, n.failures, n.retry_at,
    n.last_error, n.blocked_at, n.blocked_by,
    EXISTS (SELECT 1 FROM koi_bundles b WHERE b.rid = n.rid) AS is_known,
    EXISTS (SELECT 1 FROM koi_bundles b WHERE b.rid = n.rid AND b.origin = n.rid) AS is_met,
    (SELECT COUNT(*) FROM personalities p WHERE p.owner = n.rid) AS personalities,
    (SELECT COUNT(*) FROM koi_outbox o WHERE o.node = n.rid) AS waiting,
    (SELECT COUNT(*) FROM koi_rejections j LEFT JOIN koi_bundles b ON b.rid = j.rid
        WHERE j.node = n.rid AND j.sha256 = COALESCE(b.sha256, '')) AS rejected,
    (SELECT COALESCE(SUM(r.count), 0) FROM koi_refusals r WHERE r.node = n.rid
        AND r.code NOT IN (SELECT value FROM {{rows_of usual}} AS usual)) AS refused,
    (SELECT MAX(e.status) FROM koi_edges e WHERE e.source = n.rid AND e.target = :me) AS sends_to_us,
    (SELECT MAX(e.status) FROM koi_edges e WHERE e.target = n.rid AND e.source = :me) AS gets_from_us
FROM koi_nodes n
WHERE n.rid = :rid OR :rid IS NULL
ORDER BY n.name, n.rid;

-- name: named
SELECT rid FROM koi_nodes WHERE rid = :ref OR name = :ref ORDER BY rid LIMIT 20;

-- name: refusals
SELECT code, count, last_at, last_reason FROM koi_refusals WHERE node = :rid ORDER BY code;

-- name: all_refusals
SELECT NULLIF(r.node, '') AS rid, r.code, r.count, r.last_at, r.last_reason,
    CASE WHEN b.rid IS NULL THEN 0 ELSE 1 END AS is_known
FROM koi_refusals r LEFT JOIN koi_bundles b ON b.rid = r.node
WHERE CAST(:unknown AS {{big}}) = 0 OR b.rid IS NULL
ORDER BY r.last_at DESC, r.node, r.code LIMIT CAST(:limit AS {{big}});

-- name: rejections
-- Those of what is known now: what has changed since is sent again.
SELECT j.rid, j.code, j.reason, j.is_final, j.rejected_at FROM koi_rejections j LEFT JOIN koi_bundles b ON b.rid = j.rid
WHERE j.node = :rid AND j.sha256 = COALESCE(b.sha256, '') ORDER BY j.rid;

-- name: permissions
SELECT trait, permission, calls_per_minute, decided_by, decided_at FROM koi_permissions WHERE node = :rid
ORDER BY trait;

-- name: owned
SELECT rid FROM personalities WHERE owner = :rid ORDER BY rid;

-- name: drop_personalities
DELETE FROM personalities WHERE owner = :rid;

-- name: drop_bundles
DELETE FROM koi_bundles WHERE owner = :rid AND rid_type = 'orn:agent.personality';

-- name: drop_edge_bundles
DELETE FROM koi_bundles WHERE rid IN (SELECT e.rid FROM koi_edges e WHERE e.source = :rid OR e.target = :rid);

-- name: drop_edges
DELETE FROM koi_edges WHERE source = :rid OR target = :rid;

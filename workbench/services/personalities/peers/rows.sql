-- name: note
-- What the first contact passes on of others is accepted.
INSERT INTO koi_nodes (rid, name, node_type, base_url, public_key, is_relay, first_seen, last_seen)
VALUES (:rid, :name, :node_type, CAST(:base_url AS TEXT), :public_key,
    (SELECT COUNT(*) FROM koi_network k WHERE k.first_contact_rid = :rid), :now, :now)
ON CONFLICT (rid) DO UPDATE SET node_type = excluded.node_type, base_url = excluded.base_url,
    public_key = excluded.public_key, last_seen = excluded.last_seen,
    is_relay = CASE WHEN excluded.is_relay = 1 THEN 1 ELSE koi_nodes.is_relay END;

-- name: forget
DELETE FROM koi_nodes WHERE rid = :rid AND is_relay = 0 AND blocked_at IS NULL;

-- name: get
SELECT rid, name, node_type, base_url, public_key, is_relay, first_seen, last_seen, failures, retry_at, last_error,
    blocked_at, blocked_by
FROM koi_nodes WHERE rid = :rid;

-- name: known
SELECT rid FROM koi_nodes;

-- name: due
-- has_mail: something is to be sent; what is for a node whose edge has the type POLL waits until it is fetched.
SELECT n.rid, n.node_type, n.base_url, n.public_key, n.last_seen, n.failures, n.blocked_at,
    EXISTS (SELECT 1 FROM koi_outbox o WHERE o.node = n.rid) AND NOT EXISTS (
        SELECT 1 FROM koi_edges e WHERE e.source = :me AND e.target = n.rid AND e.edge_type = 'POLL') AS has_mail,
    n.is_relay = 1 OR EXISTS (SELECT 1 FROM koi_edges e WHERE e.source = n.rid AND e.target = :me)
        OR EXISTS (SELECT 1 FROM koi_edges e WHERE e.source = :me AND e.target = n.rid) AS is_neighbour,
    EXISTS (SELECT 1 FROM koi_edges e WHERE e.source = n.rid AND e.target = :me AND e.edge_type = 'POLL') AS is_polled
FROM koi_nodes n JOIN koi_bundles b ON b.rid = n.rid
WHERE n.blocked_at IS NULL AND n.node_type = 'FULL' AND n.base_url IS NOT NULL AND n.rid <> :me
    AND (n.retry_at IS NULL OR n.retry_at <= :now)
ORDER BY n.rid;

-- name: reached
UPDATE koi_nodes SET last_seen = :now, failures = 0, retry_at = NULL, last_error = NULL WHERE rid = :rid;

-- name: heard
UPDATE koi_nodes SET last_seen = :now WHERE rid = :rid;

-- name: failed
UPDATE koi_nodes SET failures = failures + 1, retry_at = :retry_at, last_error = :error WHERE rid = :rid;

-- name: retry
UPDATE koi_nodes SET retry_at = NULL WHERE rid = :rid AND retry_at IS NOT NULL;

-- name: retry_all
UPDATE koi_nodes SET retry_at = NULL WHERE retry_at IS NOT NULL;

-- name: set_relay
UPDATE koi_nodes SET is_relay = CASE WHEN rid = :rid THEN 1 ELSE 0 END;

-- name: block
UPDATE koi_nodes SET blocked_at = :now, blocked_by = :by WHERE rid = :rid AND blocked_at IS NULL;

-- name: unblock
UPDATE koi_nodes SET blocked_at = NULL, blocked_by = NULL, failures = 0, retry_at = NULL, last_error = NULL
WHERE rid = :rid AND blocked_at IS NOT NULL;

-- name: sender
-- A node is known as long as its own bundle is; what it was, such as blocked, stays.
SELECT n.rid, n.node_type, n.last_seen, n.public_key, n.blocked_at, n.retry_at, CASE WHEN b.rid IS NULL THEN 0 ELSE 1 END AS is_known
FROM koi_nodes n LEFT JOIN koi_bundles b ON b.rid = n.rid WHERE n.rid = :rid;

-- name: use
INSERT INTO koi_used_signatures (node, mark, used_at) VALUES (:node, :mark, :now) ON CONFLICT (node, mark) DO NOTHING;

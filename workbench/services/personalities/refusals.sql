-- name: count
INSERT INTO koi_refusals (node, code, count, last_at, last_reason) VALUES (:node, :code, 1, :now, :reason)
ON CONFLICT (node, code) DO UPDATE SET count = koi_refusals.count + 1, last_at = excluded.last_at,
    last_reason = excluded.last_reason;

-- name: of_node
SELECT code, count, last_at, last_reason FROM koi_refusals WHERE node = :node ORDER BY last_at DESC, code;

-- name: drop
DELETE FROM koi_outbox WHERE node = :node AND rid = :rid;

-- name: put
INSERT INTO koi_outbox (node, rid, event_type, queued_at) VALUES (:node, :rid, :event_type, :now);

-- name: put_known
INSERT INTO koi_outbox (node, rid, event_type, queued_at)
SELECT :node, b.rid, 'NEW', :now FROM koi_bundles b
WHERE b.rid_type IN (SELECT value FROM {{rows_of types}} AS wanted) AND b.owner <> :node
    AND (b.owner = :me OR CAST(:everything AS {{big}}) = 1)
    AND NOT EXISTS (SELECT 1 FROM koi_outbox o WHERE o.node = :node AND o.rid = b.rid)
ORDER BY b.manifest_at;

-- name: first
SELECT o.id, o.rid, o.event_type, b.manifest, b.contents, t.manifest_at AS forgotten_at
FROM koi_outbox o LEFT JOIN koi_bundles b ON b.rid = o.rid LEFT JOIN koi_tombstones t ON t.rid = o.rid
WHERE o.node = :node ORDER BY o.id LIMIT CAST(:limit AS {{big}});

-- name: is_fetched
SELECT e.rid FROM koi_edges e WHERE e.source = :me AND e.target = :node AND e.edge_type = 'POLL';

-- name: has
SELECT o.id FROM koi_outbox o WHERE o.node = :node AND o.rid = :rid;

-- name: remove
DELETE FROM koi_outbox WHERE id = :id;

-- name: empty
DELETE FROM koi_outbox WHERE node = :node;

-- name: empty_of_strangers
DELETE FROM koi_outbox WHERE node NOT IN (
    SELECT n.rid FROM koi_nodes n JOIN koi_bundles b ON b.rid = n.rid WHERE n.blocked_at IS NULL);

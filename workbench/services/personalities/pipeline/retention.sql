-- name: prune_tombstones
DELETE FROM koi_tombstones WHERE forgotten_at < (SELECT t.forgotten_at FROM koi_tombstones t
    ORDER BY t.forgotten_at DESC LIMIT 1 OFFSET CAST(:kept AS {{big}}));

-- name: prune_signatures
DELETE FROM koi_used_signatures WHERE used_at < (SELECT u.used_at FROM koi_used_signatures u
    ORDER BY u.used_at DESC LIMIT 1 OFFSET CAST(:kept AS {{big}}));

-- name: prune_history
DELETE FROM personality_history WHERE id <= (SELECT MAX(h.id) FROM personality_history h) - CAST(:kept AS {{big}});

-- name: prune_history_bytes
-- The newest changes of all personalities of a node, as many as are not larger together.
DELETE FROM personality_history WHERE id IN (
    SELECT s.id FROM (
        SELECT h.id, SUM(h.bytes) OVER (PARTITION BY o.owner ORDER BY h.id DESC) AS total
        FROM personality_history h LEFT JOIN personality_owners o ON o.name = h.name) s
    WHERE s.total > CAST(:most AS {{big}}));

-- name: prune_rejections
DELETE FROM koi_rejections WHERE node NOT IN (SELECT n.rid FROM koi_nodes n)
    OR sha256 <> COALESCE((SELECT b.sha256 FROM koi_bundles b WHERE b.rid = koi_rejections.rid), '');

-- name: prune_refusals
DELETE FROM koi_refusals WHERE node <> '' AND node NOT IN (SELECT n.rid FROM koi_nodes n)
    AND last_at < (SELECT r.last_at FROM koi_refusals r
        WHERE r.node <> '' AND r.node NOT IN (SELECT n.rid FROM koi_nodes n)
        ORDER BY r.last_at DESC LIMIT 1 OFFSET CAST(:kept AS {{big}}));

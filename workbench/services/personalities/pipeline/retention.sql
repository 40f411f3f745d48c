-- name: prune_tombstones
DELETE FROM koi_tombstones WHERE forgotten_at < (SELECT t.forgotten_at FROM koi_tombstones t
    ORDER BY t.forgotten_at DESC LIMIT 1 OFFSET CAST(:kept AS {{big}}));

-- name: prune_signatures
DELETE FROM koi_used_signatures WHERE used_at < (SELECT u.used_at FROM koi_used_signatures u
    ORDER BY u.used_at DESC LIMIT 1 OFFSET CAST(:kept AS {{big}}));

-- name: prune_history
DELETE FROM personality_history WHERE id <= (SELECT MAX(h.id) FROM personality_history h) - CAST(:kept AS {{big}});

-- name: prune_refusals
DELETE FROM koi_refusals WHERE node <> '' AND node NOT IN (SELECT n.rid FROM koi_nodes n)
    AND last_at < (SELECT r.last_at FROM koi_refusals r
        WHERE r.node <> '' AND r.node NOT IN (SELECT n.rid FROM koi_nodes n)
        ORDER BY r.last_at DESC LIMIT 1 OFFSET CAST(:kept AS {{big}}));

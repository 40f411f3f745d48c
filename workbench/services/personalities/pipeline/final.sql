-- name: put_personality
INSERT INTO personalities (rid, name, version, owner, tools, is_latest)
VALUES (:rid, :name, :version, :owner, :tools, 0)
ON CONFLICT (rid) DO UPDATE SET tools = excluded.tools, owner = excluded.owner;

-- name: delete_personality
DELETE FROM personalities WHERE rid = :rid;

-- name: set_latest
-- The latest version of a name is the one with the newest manifest.
UPDATE personalities SET is_latest = 1 - is_latest
WHERE name = :name AND is_latest <> CASE WHEN rid = (
    SELECT p.rid FROM personalities p JOIN koi_bundles b ON b.rid = p.rid WHERE p.name = :name
    ORDER BY b.manifest_at DESC, p.version DESC LIMIT 1) THEN 1 ELSE 0 END;

-- name: before
SELECT p.is_latest, h.contents FROM personalities p JOIN personality_history h ON h.rid = p.rid
WHERE p.rid = :rid ORDER BY h.id DESC LIMIT 1;

-- name: add_history
INSERT INTO personality_history (rid, name, event_type, sha256, contents, bytes, origin, manifest_at, at)
VALUES (:rid, :name, :event_type, CAST(:sha256 AS TEXT), CAST(:contents AS TEXT), :bytes, :origin,
    :manifest_at, :now);

-- name: prune_history
DELETE FROM personality_history WHERE name = :name AND id <= (
    SELECT h.id FROM personality_history h WHERE h.name = :name ORDER BY h.id DESC LIMIT 1
    OFFSET CAST(:kept AS {{big}}));

-- name: put_edge
INSERT INTO koi_edges (rid, source, target, edge_type, status, rid_types)
VALUES (:rid, :source, :target, :edge_type, :status, :rid_types)
ON CONFLICT (rid) DO UPDATE SET edge_type = excluded.edge_type, status = excluded.status,
    rid_types = excluded.rid_types;

-- name: delete_edge
DELETE FROM koi_edges WHERE rid = :rid;

-- part: stored
b.rid, b.rid_type, b.manifest, b.manifest_at, b.sha256, b.contents, b.owner, b.origin

-- name: find
SELECT {{stored}} FROM koi_bundles b WHERE b.rid = :rid;

-- name: find_all
SELECT {{stored}} FROM koi_bundles b WHERE b.rid IN (SELECT value FROM {{rows_of rids}} AS wanted) ORDER BY b.rid;

-- name: of_types
SELECT b.rid, b.manifest FROM koi_bundles b
WHERE CAST(:every AS {{big}}) = 1 OR b.rid_type IN (SELECT value FROM {{rows_of types}} AS wanted)
ORDER BY b.rid_type, b.rid;

-- name: of_owner
SELECT {{stored}} FROM koi_bundles b WHERE b.owner = :owner AND b.rid_type = :rid_type ORDER BY b.rid;

-- name: put
INSERT INTO koi_bundles (rid, rid_type, manifest, manifest_at, sha256, contents, bytes, owner, origin, first_seen,
    last_seen, changed_at)
VALUES (:rid, :rid_type, :manifest, :manifest_at, :sha256, :contents, :bytes, :owner, :origin, :now, :now, :now)
ON CONFLICT (rid) DO UPDATE SET manifest = excluded.manifest, manifest_at = excluded.manifest_at,
    sha256 = excluded.sha256, contents = excluded.contents, bytes = excluded.bytes, owner = excluded.owner, origin = excluded.origin,
    last_seen = excluded.last_seen, changed_at = excluded.changed_at;

-- name: touch
UPDATE koi_bundles SET last_seen = :now WHERE rid = :rid;

-- name: date
UPDATE koi_bundles SET manifest = :manifest, manifest_at = :at WHERE rid = :rid AND manifest_at < :at;

-- name: delete
DELETE FROM koi_bundles WHERE rid = :rid;

-- name: tombstone
SELECT manifest_at FROM koi_tombstones WHERE rid = :rid;

-- name: bury
INSERT INTO koi_tombstones (rid, rid_type, manifest_at, owner, forgotten_at)
VALUES (:rid, :rid_type, :at, :owner, :now)
ON CONFLICT (rid) DO UPDATE SET forgotten_at = excluded.forgotten_at, owner = excluded.owner,
    manifest_at = CASE WHEN excluded.manifest_at > koi_tombstones.manifest_at THEN excluded.manifest_at
        ELSE koi_tombstones.manifest_at END;

-- name: delete_tombstone
DELETE FROM koi_tombstones WHERE rid = :rid;

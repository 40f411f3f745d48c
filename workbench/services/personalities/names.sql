-- name: release
INSERT INTO personality_releases (name, key_hash, owner, released_by, released_at)
VALUES (:name, :key_hash, :owner, :by, :now) ON CONFLICT (name, key_hash) DO NOTHING;

-- name: readmit
DELETE FROM personality_releases WHERE name = :name AND key_hash = :key_hash;

-- name: disown
DELETE FROM personality_owners WHERE name = :name;

-- name: known
SELECT rid FROM personalities WHERE name = :name ORDER BY rid;

-- name: drop_personalities
DELETE FROM personalities WHERE name = :name;

-- name: drop_bundle
DELETE FROM koi_bundles WHERE rid = :rid;

-- name: drop_waiting
DELETE FROM koi_outbox WHERE rid = :rid;

-- name: drop_tombstones
DELETE FROM koi_tombstones WHERE rid_type = 'orn:agent.personality'
    AND SUBSTR(rid, 1, LENGTH(CAST(:prefix AS TEXT))) = :prefix;

-- name: is_own
SELECT name FROM own_personalities WHERE name = :name;

-- name: node
SELECT is_relay, blocked_at FROM koi_nodes WHERE rid = :rid;

-- name: owner_of
SELECT owner FROM personality_owners WHERE name = :name;

-- name: pin
INSERT INTO personality_owners (name, owner, since) VALUES (:name, :owner, :now) ON CONFLICT (name) DO NOTHING;

-- name: count
SELECT COUNT(*) AS n FROM koi_bundles WHERE rid_type = :rid_type;

-- name: count_of
SELECT COUNT(*) AS n FROM koi_bundles WHERE owner = :owner AND rid_type = :rid_type;

-- name: count_names
SELECT COUNT(*) AS n FROM personality_owners WHERE owner = :owner;

-- name: released
SELECT owner FROM personality_releases WHERE name = :name AND key_hash = :key_hash;

-- name: bytes_of
SELECT (SELECT COALESCE(SUM(b.bytes), 0) FROM koi_bundles b
        WHERE b.owner = :node AND b.rid_type <> 'orn:koi-net.edge')
    + (SELECT COALESCE(SUM(b.bytes), 0) FROM koi_bundles b
        WHERE b.origin = :node AND b.rid_type = 'orn:koi-net.edge') AS n;

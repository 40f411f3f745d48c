-- part: known
SELECT p.rid, p.name, p.version, p.owner, p.is_latest, b.origin, b.sha256, b.contents, b.manifest_at, b.first_seen,
    b.last_seen, b.changed_at, n.last_seen AS answered_at,
    CASE WHEN n.blocked_at IS NULL AND n.failures = 0 AND k.joined = 1 THEN 1 ELSE 0 END AS is_live
FROM personalities p
JOIN koi_bundles b ON b.rid = p.rid
LEFT JOIN koi_nodes n ON n.rid = b.origin
LEFT JOIN koi_network k ON k.one = 1

-- part: wanted
p.is_latest = 1
AND (CAST(:chosen AS {{big}}) = 0 OR p.name IN (SELECT n.value FROM {{rows_of names}} AS n))
AND (CAST(:search AS TEXT) IS NULL OR LOWER(p.name) LIKE LOWER(:search) ESCAPE '!'
     OR LOWER(b.contents) LIKE LOWER(:search) ESCAPE '!')
AND (CAST(:own AS {{big}}) IS NULL OR (CASE WHEN p.owner LIKE :own_node THEN 1 ELSE 0 END) = :own)

-- name: list
{{known}}
WHERE {{wanted}} AND p.name > :after
ORDER BY p.name
LIMIT :limit;

-- name: count
SELECT COUNT(*) AS n FROM personalities p JOIN koi_bundles b ON b.rid = p.rid WHERE {{wanted}};

-- name: versions
SELECT p.name, p.version FROM personalities p JOIN koi_bundles b ON b.rid = p.rid
WHERE p.name IN (SELECT n.value FROM {{rows_of names}} AS n)
ORDER BY p.name, b.manifest_at DESC, p.version DESC;

-- name: one
{{known}}
WHERE p.name = :name
  AND (p.version = CAST(:version AS TEXT) OR (CAST(:version AS TEXT) IS NULL AND p.is_latest = 1));

-- name: similar
SELECT name FROM personalities WHERE is_latest = 1 ORDER BY name LIMIT 1000;

-- name: unpublished
SELECT w.name FROM own_personalities w
WHERE NOT EXISTS (SELECT 1 FROM personalities p WHERE p.name = w.name AND p.version = w.version) ORDER BY w.name;

-- name: changes
SELECT h.id, h.rid, h.event_type, h.sha256, h.contents, h.origin, h.manifest_at, h.at, e.contents AS contents_before
FROM personality_history h
LEFT JOIN personality_history e ON e.id = COALESCE(
    (SELECT MAX(s.id) FROM personality_history s
     WHERE s.name = h.name AND s.rid = h.rid AND s.id < h.id AND s.contents IS NOT NULL),
    (SELECT MAX(s.id) FROM personality_history s
     WHERE s.name = h.name AND s.id < h.id AND s.contents IS NOT NULL))
WHERE h.name = :name AND h.id < :before_id
  AND (CAST(:rid AS TEXT) IS NULL OR h.rid = CAST(:rid AS TEXT))
ORDER BY h.id DESC
LIMIT :limit;

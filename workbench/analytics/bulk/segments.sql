-- name: extent
SELECT (SELECT MIN(id) FROM events) AS first, (SELECT MAX(id) FROM events) AS last,
    (SELECT COUNT(*) FROM events) AS count;

-- name: count
SELECT COUNT(*) AS count FROM events WHERE id >= :low AND id <= :high;

-- name: ends
SELECT * FROM (
    SELECT id, at, kind, actor, subject, data FROM events WHERE id >= :low AND id <= :high ORDER BY id LIMIT 1
) AS f
UNION ALL
SELECT * FROM (
    SELECT id, at, kind, actor, subject, data FROM events WHERE id >= :low AND id <= :high ORDER BY id DESC LIMIT 1
) AS l;

-- name: all
SELECT * FROM saved_views WHERE CAST(:area AS TEXT) IS NULL OR area = :area ORDER BY area, LOWER(name), id;

-- name: get
SELECT * FROM saved_views WHERE id = :id;

-- name: count
SELECT COUNT(*) AS n FROM saved_views WHERE area = :area;

-- name: put
INSERT INTO saved_views (area, name, state, saved_by, saved_at) VALUES (:area, :name, :state, :by, :now)
ON CONFLICT (area, name) DO UPDATE SET state = excluded.state, saved_by = excluded.saved_by, saved_at = excluded.saved_at
RETURNING id;

-- name: named
SELECT id FROM saved_views WHERE area = :area AND name = :name;

-- name: rename
UPDATE saved_views SET name = :name WHERE id = :id;

-- name: delete
DELETE FROM saved_views WHERE id = :id;

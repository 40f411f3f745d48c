-- name: add
INSERT INTO admission_rules (name, pattern, loopback_only, grants, created_at)
VALUES (:name, :pattern, :loopback, :grants, :now) RETURNING id;

-- name: by_name
SELECT id FROM admission_rules WHERE name = :name;

-- name: list
SELECT id, name, pattern, loopback_only, grants, created_at FROM admission_rules ORDER BY id;

-- name: remove
DELETE FROM admission_rules WHERE name = :name;

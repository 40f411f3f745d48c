-- part: shown
SELECT p.id, p.name, p.description, p.created_at, p.updated_at, p.deleted_at,
    (SELECT COUNT(*) FROM sessions s WHERE s.project_id = p.id AND s.deleted_at IS NULL) AS sessions
FROM projects p

-- part: in_sight
(p.deleted_at IS NOT NULL) = (CAST(:deleted AS {{big}}) = 1)
  AND (CAST(:everything AS {{big}}) = 1
       OR p.id = (SELECT project_id FROM sessions WHERE id = :own AND deleted_at IS NULL))

-- part: wanted
(CAST(:search AS TEXT) IS NULL
       OR LOWER(p.name) LIKE LOWER(:search) ESCAPE '!' OR LOWER(p.description) LIKE LOWER(:search) ESCAPE '!')
  AND (CAST(:since AS {{big}}) IS NULL OR p.updated_at > :since)
  AND {{in_sight}}

-- name: add
INSERT INTO projects (id, name, description, created_at, updated_at)
VALUES (:id, :name, :description, :now, :now);

-- name: named
SELECT 1 AS found FROM projects WHERE name = :name AND deleted_at IS NULL AND id <> :besides;

-- name: find
{{shown}}
WHERE (p.id = :ref OR p.name = :ref)
  AND {{in_sight}}
ORDER BY p.created_at, p.id;

-- name: list
{{shown}}
WHERE {{wanted}}
  AND (p.created_at, p.id) > (CAST(:after_at AS {{big}}), CAST(:after_id AS TEXT))
ORDER BY p.created_at, p.id LIMIT :limit;

-- name: count
SELECT COUNT(*) AS n FROM projects p
WHERE {{wanted}};

-- name: update
UPDATE projects SET name = COALESCE(CAST(:name AS TEXT), name),
    description = COALESCE(CAST(:description AS TEXT), description), updated_at = :now
WHERE id = :id;

-- name: set_deleted
UPDATE projects SET deleted_at = CAST(:at AS {{big}}) WHERE id = :id;

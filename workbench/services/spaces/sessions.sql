-- part: shown
SELECT s.id, s.project_id, p.name AS project, s.name, s.description, s.used_at, s.created_at, s.updated_at,
    COALESCE(s.deleted_at, p.deleted_at) AS deleted_at,
    (SELECT COUNT(*) FROM teams t WHERE t.session_id = s.id AND t.deleted_at IS NULL) AS teams,
    (SELECT COUNT(*) FROM agents a WHERE a.session_id = s.id AND a.deleted_at IS NULL) AS agents,
    s.contexts - (SELECT COUNT(*) FROM contexts c WHERE c.session_id = s.id AND c.deleted_at IS NOT NULL) AS contexts
FROM sessions s JOIN projects p ON p.id = s.project_id

-- part: in_sight
(COALESCE(s.deleted_at, p.deleted_at) IS NOT NULL) = (CAST(:deleted AS {{big}}) = 1)
  AND (CAST(:everything AS {{big}}) = 1 OR s.id = :own)

-- part: wanted
(CAST(:project AS TEXT) IS NULL OR s.project_id = :project)
  AND (CAST(:search AS TEXT) IS NULL
       OR LOWER(s.name) LIKE LOWER(:search) ESCAPE '!' OR LOWER(s.description) LIKE LOWER(:search) ESCAPE '!')
  AND (CAST(:since AS {{big}}) IS NULL OR s.updated_at > :since)
  AND {{in_sight}}

-- name: add
INSERT INTO sessions (id, project_id, name, description, created_at, updated_at)
VALUES (:id, :project, :name, :description, :now, :now);

-- name: named
SELECT 1 AS found FROM sessions
WHERE project_id = :project AND name = :name AND deleted_at IS NULL AND id <> :besides;

-- name: find
{{shown}}
WHERE (s.id = :ref OR s.name = :ref)
  AND {{in_sight}}
ORDER BY s.created_at, s.id;

-- name: list
{{shown}}
WHERE {{wanted}}
  AND (s.created_at, s.id) > (CAST(:after_at AS {{big}}), CAST(:after_id AS TEXT))
ORDER BY s.created_at, s.id LIMIT :limit;

-- name: count
SELECT COUNT(*) AS n FROM sessions s JOIN projects p ON p.id = s.project_id
WHERE {{wanted}};

-- name: update
UPDATE sessions SET name = COALESCE(CAST(:name AS TEXT), name),
    description = COALESCE(CAST(:description AS TEXT), description), updated_at = :now
WHERE id = :id;

-- name: set_deleted
UPDATE sessions SET deleted_at = CAST(:at AS {{big}}) WHERE id = :id;

-- part: places
FROM teams t LEFT JOIN sessions s ON s.id = t.session_id LEFT JOIN projects p ON p.id = s.project_id

-- part: shown
SELECT t.id, t.session_id, s.name AS session, t.name, t.description, t.created_at, t.updated_at,
    COALESCE(t.deleted_at, s.deleted_at, p.deleted_at) AS deleted_at,
    (SELECT COUNT(*) FROM agents a WHERE a.team_id = t.id AND a.deleted_at IS NULL) AS agents
{{places}}

-- part: in_sight
(COALESCE(t.deleted_at, s.deleted_at, p.deleted_at) IS NOT NULL) = (CAST(:deleted AS {{big}}) = 1)
  AND (CAST(:everything AS {{big}}) = 1 OR t.id = :own OR t.session_id = :of_session)

-- part: wanted
(CAST(:session AS TEXT) IS NULL OR t.session_id = :session)
  AND (CAST(:search AS TEXT) IS NULL
       OR LOWER(t.name) LIKE LOWER(:search) ESCAPE '!' OR LOWER(t.description) LIKE LOWER(:search) ESCAPE '!')
  AND (CAST(:since AS {{big}}) IS NULL OR t.updated_at > :since)
  AND {{in_sight}}

-- name: add
INSERT INTO teams (id, session_id, name, description, created_at, updated_at)
VALUES (:id, :session, :name, :description, :now, :now);

-- name: named
SELECT 1 AS found FROM teams
WHERE COALESCE(session_id, '') = :session AND name = :name AND deleted_at IS NULL AND id <> :besides;

-- name: find
{{shown}}
WHERE (t.id = :ref OR t.name = :ref)
  AND {{in_sight}}
ORDER BY t.created_at, t.id;

-- name: list
{{shown}}
WHERE {{wanted}}
  AND (t.created_at, t.id) > (CAST(:after_at AS {{big}}), CAST(:after_id AS TEXT))
ORDER BY t.created_at, t.id LIMIT :limit;

-- name: count
SELECT COUNT(*) AS n
{{places}}
WHERE {{wanted}};

-- name: update
UPDATE teams SET name = COALESCE(CAST(:name AS TEXT), name),
    description = COALESCE(CAST(:description AS TEXT), description), updated_at = :now
WHERE id = :id;

-- name: move
UPDATE teams SET session_id = CAST(:session AS TEXT), updated_at = :now WHERE id = :id;

-- name: move_members
UPDATE agents SET session_id = CAST(:session AS TEXT) WHERE team_id = :team;

-- name: set_deleted
UPDATE teams SET deleted_at = CAST(:at AS {{big}}) WHERE id = :id;

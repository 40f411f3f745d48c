-- part: table
teams

-- part: source
teams x LEFT JOIN sessions s ON s.id = x.session_id LEFT JOIN projects p ON p.id = s.project_id

-- part: columns
    x.session_id, s.name AS session,
    (SELECT COUNT(*) FROM agents a WHERE a.team_id = x.id AND a.deleted_at IS NULL) AS agents

-- part: parent_id
x.session_id

-- part: deleted_at
COALESCE(x.deleted_at, s.deleted_at, p.deleted_at)

-- part: visible_to_agent
x.id = :team OR x.session_id = :whole_session

-- use: space

-- name: add
INSERT INTO teams (id, session_id, name, description, created_at, updated_at)
VALUES (:id, :parent, :name, :description, :now, :now);

-- name: move
UPDATE teams SET session_id = CAST(:session AS TEXT), updated_at = :now WHERE id = :id;

-- name: move_members
UPDATE agents SET session_id = CAST(:session AS TEXT) WHERE team_id = :team;

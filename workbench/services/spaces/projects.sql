-- part: table
projects

-- part: source
projects x

-- part: columns
    (SELECT COUNT(*) FROM sessions s WHERE s.project_id = x.id AND s.deleted_at IS NULL) AS sessions

-- part: parent_id
CAST(NULL AS TEXT)

-- part: deleted_at
x.deleted_at

-- part: visible_to_agent
x.id = (SELECT project_id FROM sessions WHERE id = :session AND deleted_at IS NULL)

-- use: space

-- name: add
INSERT INTO projects (id, name, description, created_at, updated_at) VALUES (:id, :name, :description, :now, :now);

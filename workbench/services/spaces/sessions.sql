-- part: table
sessions

-- part: source
sessions x JOIN projects p ON p.id = x.project_id

-- part: columns
    x.project_id, p.name AS project,
    (SELECT COUNT(*) FROM teams t WHERE t.session_id = x.id AND t.deleted_at IS NULL) AS teams,
    (SELECT COUNT(*) FROM agents a WHERE a.session_id = x.id AND a.deleted_at IS NULL) AS agents,
    x.contexts - (SELECT COUNT(*) FROM contexts c WHERE c.session_id = x.id AND c.deleted_at IS NOT NULL) AS contexts

-- part: parent_id
x.project_id

-- part: deleted_at
COALESCE(x.deleted_at, p.deleted_at)

-- part: visible_to_agent
x.id = :session

-- use: space

-- name: add
INSERT INTO sessions (id, project_id, name, description, created_at, updated_at)
VALUES (:id, :parent, :name, :description, :now, :now);

-- name: list
SELECT id, name, role, sha256 FROM personas ORDER BY id;

-- name: get
SELECT * FROM personas WHERE id = :id;

-- name: save
INSERT INTO personas (id, name, role, definition, sha256, source, updated_at)
VALUES (:id, :name, :role, :definition, :sha256, :source, :now)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, role = excluded.role,
    definition = excluded.definition, sha256 = excluded.sha256, source = excluded.source,
    updated_at = excluded.updated_at;

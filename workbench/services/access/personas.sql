-- name: list
SELECT id, name, role, sha256 FROM personas ORDER BY id;

-- name: get
SELECT * FROM personas WHERE id = :id;

-- name: save
INSERT INTO personas (id, name, role, definition, sha256, source, lease_us, workplace, check_stated, budget, needs, updated_at)
VALUES (:id, :name, :role, :definition, :sha256, :source, CAST(:lease_us AS {{big}}), CAST(:workplace AS TEXT),
    CAST(:check AS TEXT), CAST(:budget AS TEXT), CAST(:needs AS TEXT), :now)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, role = excluded.role,
    definition = excluded.definition, sha256 = excluded.sha256, source = excluded.source,
    lease_us = excluded.lease_us, workplace = excluded.workplace, check_stated = excluded.check_stated,
    budget = excluded.budget, needs = excluded.needs,
    updated_at = excluded.updated_at;

-- name: keep_version
INSERT INTO persona_versions (persona_id, sha256, name, role, definition, source, saved_by, saved_at)
VALUES (:id, :sha256, :name, :role, :definition, :source, :by, :now)
ON CONFLICT (persona_id, sha256) DO UPDATE SET saved_by = excluded.saved_by, saved_at = excluded.saved_at;

-- name: versions
SELECT sha256, name, role, definition, source, saved_by, saved_at FROM persona_versions
WHERE persona_id = :id ORDER BY saved_at DESC, sha256;

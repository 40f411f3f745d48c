-- name: record
UPDATE agents SET definition_hash = CAST(:definition_hash AS TEXT), prompt_hash = CAST(:prompt_hash AS TEXT),
    include = CAST(:include AS TEXT)
WHERE id = :agent;

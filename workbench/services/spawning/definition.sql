-- name: record
UPDATE agents SET definition_hash = CAST(:hash AS TEXT) WHERE id = :agent;

-- name: delete
UPDATE agents SET deleted_at = :now WHERE id = :id;

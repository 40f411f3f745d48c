-- name: artifact
SELECT name, path, media_type, bytes, sha256, added_at FROM run_artifacts WHERE run_id = :run AND name = :name;

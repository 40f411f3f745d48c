-- name: add
INSERT INTO run_artifacts (run_id, name, path, media_type, bytes, sha256, added_at)
VALUES (:run, :name, :path, :media_type, :bytes, :sha256, :now)
ON CONFLICT (run_id, name) DO UPDATE SET path = excluded.path, media_type = excluded.media_type,
    bytes = excluded.bytes, sha256 = excluded.sha256, added_at = excluded.added_at;

-- name: count
SELECT COUNT(*) AS n FROM run_artifacts WHERE run_id = :run;

-- name: artifact
SELECT name, path, media_type, bytes, sha256, added_at FROM run_artifacts WHERE run_id = :run AND name = :name;

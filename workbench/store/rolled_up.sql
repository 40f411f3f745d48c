-- name: last
SELECT COALESCE(MAX(last_id), 0) AS id FROM rolled_up_events;

-- name: newest
SELECT last_id, events FROM rolled_up_events ORDER BY last_id DESC LIMIT 1;

-- name: files
SELECT last_id, sha256, parquet FROM rolled_up_events WHERE last_id > :cursor ORDER BY last_id LIMIT :limit;

-- name: oldest
SELECT id, at, kind, actor, subject, session, data FROM events
WHERE id > :after ORDER BY id LIMIT :limit;

-- name: add
INSERT INTO rolled_up_events (last_id, first_id, first_at, last_at, events, sha256, parquet)
VALUES (:last_id, :first_id, :first_at, :last_at, :events, :sha256, :parquet);

-- name: remove_file
DELETE FROM rolled_up_events WHERE last_id = :last_id;

-- name: remove_rows
DELETE FROM events WHERE id IN (
    SELECT id FROM events WHERE id <= (SELECT MAX(last_id) FROM rolled_up_events) ORDER BY id LIMIT :limit);

-- name: after
SELECT id, at, kind, actor, subject, session, data FROM events
WHERE id > :cursor ORDER BY id LIMIT :limit;

-- name: last
SELECT id FROM events ORDER BY id DESC LIMIT 1;

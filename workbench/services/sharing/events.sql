-- name: newest
SELECT id, at, kind, actor, subject, session, data FROM events
WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- name: newest_about
SELECT id, at, kind, actor, subject, session, data FROM events
WHERE subject = :subject AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: about
SELECT id, at, kind, actor, subject, session, data FROM events
WHERE subject = :subject AND id > :cursor ORDER BY id LIMIT :limit;

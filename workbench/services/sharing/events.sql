-- name: about
SELECT id, at, kind, actor, subject, session, data FROM events
WHERE subject = :subject AND id > :cursor ORDER BY id LIMIT :limit;

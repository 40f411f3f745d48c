-- name: events
SELECT id, at, kind, actor, subject, session, data FROM events WHERE id > :after ORDER BY id LIMIT :limit;

-- name: mark
SELECT at, kind, actor, subject, data FROM events WHERE id = :id;

-- name: newest_about
SELECT id, at, kind, actor, subject, session, data FROM events WHERE subject = :subject ORDER BY id DESC LIMIT 1;

-- name: newest_of
SELECT id FROM events WHERE actor = :actor AND id > :after ORDER BY id DESC LIMIT 1;

-- name: cancelled_with
-- The events of one cancellation: those of one transaction follow each other.
SELECT id, at, kind, actor, subject, session, data FROM events
WHERE id >= :first AND at = :at AND kind = 'task.cancelled' AND actor = :actor ORDER BY id;

-- name: events
SELECT id, at AS at_us, kind, actor, subject, session, data FROM events WHERE id >= :low AND id <= :high ORDER BY id;

-- name: events
SELECT id, at AS at_us, kind, actor, subject, session, data FROM events WHERE id > :rolled_up AND id <= :last ORDER BY id;

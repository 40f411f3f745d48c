-- name: newest
SELECT id, at FROM events WHERE actor <> 'system' ORDER BY id DESC LIMIT 1;

-- name: identity
SELECT
    (SELECT applied_at FROM migration_history ORDER BY id LIMIT 1) AS created,
    (SELECT at FROM events WHERE id = :event) AS at,
    (SELECT MAX(last_id) FROM rolled_up_events) AS rolled_up;

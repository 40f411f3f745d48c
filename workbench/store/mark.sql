-- name: newest
SELECT
    (SELECT applied_at FROM migration_history ORDER BY id LIMIT 1),
    COALESCE((SELECT id FROM events ORDER BY id DESC LIMIT 1), 0),
    COALESCE((SELECT at FROM events ORDER BY id DESC LIMIT 1), 0);

-- name: tables
SELECT name FROM sqlite_master WHERE type = 'table';

-- name: compared
SELECT
    (SELECT applied_at FROM migration_history ORDER BY id LIMIT 1),
    COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0),
    (SELECT at FROM events WHERE id = :event);

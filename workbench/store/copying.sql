-- name: users
SELECT pid, COALESCE(CAST(client_addr AS TEXT), 'this machine') FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'workbench' AND pid <> pg_backend_pid() ORDER BY pid;

-- name: has_servers
SELECT 1 WHERE to_regclass('servers') IS NOT NULL;

-- name: servers
SELECT url, machine FROM servers WHERE ended_at IS NULL ORDER BY seen_at DESC LIMIT 3;

-- name: last_event
SELECT COALESCE(pg_sequence_last_value(CAST(pg_get_serial_sequence('events', 'id') AS REGCLASS)), 0)
WHERE to_regclass('events') IS NOT NULL;

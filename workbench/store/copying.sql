-- name: users
SELECT pid, COALESCE(CAST(client_addr AS TEXT), 'this machine') FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'workbench' AND pid <> pg_backend_pid() ORDER BY pid;

-- name: last_event
SELECT COALESCE(pg_sequence_last_value(CAST(pg_get_serial_sequence('events', 'id') AS REGCLASS)), 0);

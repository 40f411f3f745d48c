-- name: status
SELECT
    current_setting('server_version'),
    {{database_bytes}},
    (SELECT COUNT(*) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'workbench' AND pid <> pg_backend_pid()),
    (SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()),
    CAST(current_setting('max_connections') AS INTEGER);

-- name: counts
-- The largest ids, because SQLite counts rows one by one.
SELECT
    (SELECT COUNT(*) FROM connections WHERE closed_at IS NULL) AS connections,
    (SELECT COUNT(*) FROM agents WHERE registration_status = 'pending') AS pending_agents,
    (SELECT COALESCE(MAX(id), 0) FROM events) AS events,
    (SELECT COALESCE(MAX(id), 0) FROM tasks) AS tasks,
    {{database_bytes}} AS database_bytes;

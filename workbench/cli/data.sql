-- name: migrations
SELECT migration_name, script_hash, applied_at, execution_time_ms, success, reason FROM migration_history ORDER BY id;

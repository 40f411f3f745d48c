-- name: create_history
CREATE TABLE IF NOT EXISTS migration_history (
    id {{id}},
    migration_name TEXT NOT NULL,
    script_hash TEXT NOT NULL,
    applied_at {{big}} NOT NULL,
    execution_time_ms {{big}} NOT NULL,
    success INTEGER NOT NULL,
    reason TEXT NOT NULL
) {{strict}};

-- name: history_exists
{{sqlite}}
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migration_history'
{{end}}{{postgres}}
SELECT 1 WHERE to_regclass('migration_history') IS NOT NULL
{{end}};

-- name: applied
SELECT migration_name, script_hash FROM migration_history WHERE success = 1 ORDER BY id;

-- name: record
INSERT INTO migration_history (migration_name, script_hash, applied_at, execution_time_ms, success, reason)
VALUES (:name, :hash, :at, :elapsed, :success, :reason);

-- name: history
SELECT migration_name, script_hash, applied_at, execution_time_ms, success, reason FROM migration_history ORDER BY id;

-- name: created
SELECT applied_at FROM migration_history ORDER BY id LIMIT 1;

-- name: extent
SELECT COUNT(DISTINCT migration_name), MAX(migration_name) FROM migration_history WHERE success = 1;

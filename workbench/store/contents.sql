-- name: sqlite_tables
SELECT name FROM pragma_table_list
WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name;

-- name: sqlite_columns
SELECT name FROM pragma_table_info(:table) ORDER BY cid;

-- name: sqlite_last_ids
SELECT name, seq FROM sqlite_sequence;

-- name: sqlite_indexes
SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name;

-- name: postgres_columns
SELECT c.relname, a.attname, format_type(a.atttypid, NULL), a.attidentity <> ''
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = CAST(current_schema() AS REGNAMESPACE) AND c.relkind = 'r' AND a.attnum > 0
    AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY c.relname, a.attnum;

-- name: postgres_references
SELECT CAST(CAST(conrelid AS REGCLASS) AS TEXT), conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE contype = 'f' AND connamespace = CAST(current_schema() AS REGNAMESPACE) ORDER BY 1, 2;

-- name: postgres_sequence
SELECT pg_get_serial_sequence(:table, :column);

-- name: postgres_last_id
SELECT last_value FROM pg_sequences
WHERE schemaname = current_schema() AND format('%I.%I', schemaname, sequencename) = :sequence;

-- name: postgres_continue
SELECT setval(CAST(:sequence AS REGCLASS), GREATEST(:last, 1), :last > 0);

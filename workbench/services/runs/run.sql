-- part: fields
r.id, r.key, r.sweep_id, r.parent_id, w.name AS sweep, r.name, r.notebook, r.parameters, r.state, r.error_code, r.error,
    r.session_id, r.git_commit, r.git_dirty, r.definitions, r.environment, r.output, r.tries, r.process, r.machine, r.notes,
    r.created_by, r.started_at, r.ended_at, r.archived_at,
    (SELECT COUNT(*) FROM run_artifacts f WHERE f.run_id = r.id) AS artifacts

-- part: columns
SELECT {{fields}}
FROM runs r LEFT JOIN sweeps w ON w.id = r.sweep_id

-- part: visible
(CAST(:everything AS {{big}}) = 1 OR r.session_id IS NULL OR r.session_id = :mine)

-- part: text_name
r.name{{postgres}} COLLATE "C"{{end}}

-- use: listing

-- name: get
{{columns}}
WHERE r.id = :id AND {{visible}};

-- name: named
{{columns}}
WHERE {{text_name}} = :name AND {{visible}}
ORDER BY CASE WHEN r.archived_at IS NULL THEN 0 ELSE 1 END, r.id DESC LIMIT :limit;

-- name: by_key
{{columns}}
WHERE r.key = :key;

-- name: tags
SELECT run_id, tag FROM run_tags
WHERE run_id IN (SELECT CAST(value AS {{big}}) FROM {{rows_of runs}} AS i) ORDER BY run_id, tag;

-- name: latest
SELECT run_id, name, step, value, text FROM run_latest_metrics
WHERE run_id IN (SELECT CAST(value AS {{big}}) FROM {{rows_of runs}} AS i) ORDER BY run_id, name;

-- name: has_metric
SELECT 1 AS found FROM run_latest_metrics m JOIN runs r ON r.id = m.run_id
WHERE m.name = :metric AND m.value IS NOT NULL AND {{visible}}
UNION ALL
SELECT 1 AS found FROM run_latest_metrics m JOIN runs r ON r.id = m.run_id
WHERE m.name = :metric AND m.value IS NULL AND {{visible}}
LIMIT 1;

-- name: metric_names
SELECT DISTINCT m.name FROM run_latest_metrics m JOIN runs r ON r.id = m.run_id
WHERE {{visible}} ORDER BY m.name;

-- name: parameter_names
SELECT DISTINCT m.key AS name
FROM runs r, {{sqlite}}json_each(r.parameters){{end}}{{postgres}}LATERAL jsonb_each(CAST(r.parameters AS JSONB)){{end}} AS m
WHERE {{visible}} ORDER BY m.key;

-- name: series
SELECT name, COUNT(*) AS count, MIN(value) AS low, MAX(value) AS high FROM run_metrics
WHERE run_id = :run GROUP BY name ORDER BY name;

-- name: inner
SELECT r.id, r.name, r.state FROM runs r WHERE r.parent_id = :run AND {{visible}} ORDER BY r.id LIMIT :limit;

-- name: artifacts
SELECT name, path, media_type, bytes, sha256, added_at FROM run_artifacts WHERE run_id = :run ORDER BY name;

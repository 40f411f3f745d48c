-- part: columns
SELECT r.id, r.key, r.sweep_id, w.name AS sweep, r.name, r.notebook, r.parameters, r.state, r.error_code, r.error,
    r.session_id, r.git_commit, r.git_dirty, r.definitions, r.environment, r.output, r.tries, r.process, r.notes,
    r.created_by, r.started_at, r.ended_at, r.archived_at,
    (SELECT COUNT(*) FROM run_artifacts f WHERE f.run_id = r.id) AS artifacts
FROM runs r LEFT JOIN sweeps w ON w.id = r.sweep_id

-- name: get
{{columns}}
WHERE r.id = :id AND (CAST(:everything AS {{big}}) = 1 OR r.session_id IS NULL OR r.session_id = :mine);

-- name: named
{{columns}}
WHERE r.name = :name AND (CAST(:everything AS {{big}}) = 1 OR r.session_id IS NULL OR r.session_id = :mine)
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

-- name: series
SELECT name, COUNT(*) AS count, MIN(value) AS low, MAX(value) AS high FROM run_metrics
WHERE run_id = :run GROUP BY name ORDER BY name;

-- name: artifacts
SELECT name, path, media_type, bytes, sha256, added_at FROM run_artifacts WHERE run_id = :run ORDER BY name;

-- part: conditions
{{sqlite}}
(SELECT json_extract(value, '$.name') AS name, json_extract(value, '$.relation') AS relation,
        json_extract(value, '$.number') AS number, json_extract(value, '$.text') AS text
    FROM json_each(CAST(:conditions AS TEXT)))
{{end}}
{{postgres}}
(SELECT * FROM jsonb_to_recordset(CAST(CAST(:conditions AS TEXT) AS JSONB))
    AS given (name TEXT, relation TEXT, number DOUBLE PRECISION, text TEXT))
{{end}}

-- part: wanted
(CAST(:everything AS {{big}}) = 1 OR r.session_id IS NULL OR r.session_id = :mine)
  AND (CAST(:sweep AS TEXT) IS NULL OR w.name = :sweep OR CAST(r.sweep_id AS TEXT) = :sweep)
  AND (CAST(:state AS TEXT) IS NULL OR r.state = :state)
  AND (CAST(:tag AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM run_tags t WHERE t.run_id = r.id AND t.tag = :tag))
  AND (CAST(:search AS TEXT) IS NULL OR LOWER(r.name) LIKE LOWER(:search) ESCAPE '!'
       OR LOWER(r.notebook) LIKE LOWER(:search) ESCAPE '!' OR LOWER(r.notes) LIKE LOWER(:search) ESCAPE '!')
  AND (CAST(:archived AS {{big}}) = CASE WHEN r.archived_at IS NULL THEN 0 ELSE 1 END)
  AND NOT EXISTS (SELECT 1 FROM {{conditions}} AS c WHERE NOT EXISTS (
      SELECT 1 FROM run_latest_metrics m WHERE m.run_id = r.id AND m.name = c.name AND CASE c.relation
          WHEN '<' THEN m.value < c.number
          WHEN '<=' THEN m.value <= c.number
          WHEN '>' THEN m.value > c.number
          WHEN '>=' THEN m.value >= c.number
          WHEN '=' THEN m.value = c.number OR m.text = c.text
          ELSE COALESCE(m.value <> c.number, m.text <> c.text, m.value IS NOT NULL OR c.text IS NULL) END))

-- name: list_newest
{{columns}}
WHERE r.id < :after
  AND {{wanted}}
ORDER BY r.id DESC LIMIT :limit;

-- name: list_by_metric
SELECT * FROM (
    SELECT listed.*, CASE WHEN s.value IS NULL THEN 1 ELSE 0 END AS missing,
        COALESCE(s.value * CAST(:direction AS {{real}}), CAST(0 AS {{real}})) AS rank
    FROM (
        {{columns}}
        WHERE {{wanted}}
    ) AS listed LEFT JOIN run_latest_metrics s ON s.run_id = listed.id AND s.name = :metric
) AS ranked
WHERE missing > CAST(:after_missing AS {{big}})
   OR (missing = CAST(:after_missing AS {{big}}) AND rank > CAST(:after_rank AS {{real}}))
   OR (missing = CAST(:after_missing AS {{big}}) AND rank = CAST(:after_rank AS {{real}}) AND id < CAST(:after AS {{big}}))
ORDER BY missing, rank, id DESC LIMIT :limit;

-- Pages of lists of runs: each query continues after the value and the id of the last row, along an index. Rows with the
-- same value are in the order of their ids, so that the index serves both directions.

-- part: conditions
{{sqlite}}
(SELECT json_extract(value, '$.name') AS name, json_extract(value, '$.of') AS subject,
        json_extract(value, '$.relation') AS relation, json_extract(value, '$.number') AS number, json_extract(value, '$.text') AS text
    FROM json_each(CAST(:conditions AS TEXT)))
{{end}}
{{postgres}}
(SELECT name, "of" AS subject, relation, number, text
    FROM jsonb_to_recordset(CAST(CAST(:conditions AS TEXT) AS JSONB))
        AS given (name TEXT, "of" TEXT, relation TEXT, number DOUBLE PRECISION, text TEXT))
{{end}}

-- part: parameters
{{sqlite}}
(SELECT key AS name, CASE WHEN type IN ('integer', 'real') THEN value END AS value,
        CASE WHEN type = 'text' THEN value WHEN type IN ('true', 'false') THEN type END AS text
    FROM json_each(r.parameters))
{{end}}
{{postgres}}
(SELECT key AS name, CASE WHEN jsonb_typeof(value) = 'number' THEN CAST(value #>> '{}' AS DOUBLE PRECISION) END AS value,
        CASE WHEN jsonb_typeof(value) IN ('string', 'boolean') THEN value #>> '{}' END AS text
    FROM jsonb_each(CAST(r.parameters AS JSONB)))
{{end}}

-- part: holds
CASE c.relation
          WHEN '<' THEN m.value < c.number
          WHEN '<=' THEN m.value <= c.number
          WHEN '>' THEN m.value > c.number
          WHEN '>=' THEN m.value >= c.number
          WHEN '=' THEN m.value = c.number OR m.text = c.text
          ELSE COALESCE(m.value <> c.number, m.text <> c.text, m.value IS NOT NULL OR c.text IS NULL) END

-- part: wanted
{{visible}}
  AND (CAST(:sweep AS TEXT) IS NULL OR r.sweep_id = COALESCE(
      (SELECT x.id FROM sweeps x WHERE CAST(x.id AS TEXT) = :sweep), (SELECT x.id FROM sweeps x WHERE x.name = :sweep)))
  AND (CAST(:state AS TEXT) IS NULL OR r.state = :state)
  AND (CAST(:tag AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM run_tags t WHERE t.run_id = r.id AND t.tag = :tag))
  AND (CAST(:search AS TEXT) IS NULL OR LOWER(r.name) LIKE LOWER(:search) ESCAPE '!'
       OR LOWER(r.notebook) LIKE LOWER(:search) ESCAPE '!' OR LOWER(r.notes) LIKE LOWER(:search) ESCAPE '!')
  AND (CAST(:archived AS {{big}}) = CASE WHEN r.archived_at IS NULL THEN 0 ELSE 1 END)
  AND NOT EXISTS (SELECT 1 FROM {{conditions}} AS c WHERE c.subject = 'metric' AND NOT EXISTS (
      SELECT 1 FROM run_latest_metrics m WHERE m.run_id = r.id AND m.name = c.name AND {{holds}}))
  AND NOT EXISTS (SELECT 1 FROM {{conditions}} AS c WHERE c.subject = 'parameter' AND NOT EXISTS (
      SELECT 1 FROM {{parameters}} AS m WHERE m.name = c.name AND {{holds}}))

-- name: newest
{{columns}}
WHERE r.id < :after
  AND {{wanted}}
ORDER BY r.id DESC LIMIT :limit;

-- Of two values, not of rows: SQLite compares no row with an expression in it along an index.
-- part: duration
CAST(r.ended_at - r.started_at AS {{big}})

-- part: measured
SELECT {{fields}}, s.value AS measured
FROM run_latest_metrics s JOIN runs r ON r.id = s.run_id LEFT JOIN sweeps w ON w.id = r.sweep_id
WHERE s.name = :metric AND s.value IS NOT NULL

-- name: by_name
{{columns}}
WHERE ({{text_name}}, r.id) > (CAST(:value AS TEXT), CAST(:after AS {{big}}))
  AND {{wanted}}
ORDER BY {{text_name}}, r.id LIMIT :limit;

-- name: by_name_descending
{{columns}}
WHERE ({{text_name}}, r.id) < (CAST(:value AS TEXT), CAST(:after AS {{big}}))
  AND {{wanted}}
ORDER BY {{text_name}} DESC, r.id DESC LIMIT :limit;

-- name: by_state
{{columns}}
WHERE (r.state, r.id) > (CAST(:value AS TEXT), CAST(:after AS {{big}}))
  AND {{wanted}}
ORDER BY r.state, r.id LIMIT :limit;

-- name: by_state_descending
{{columns}}
WHERE (r.state, r.id) < (CAST(:value AS TEXT), CAST(:after AS {{big}}))
  AND {{wanted}}
ORDER BY r.state DESC, r.id DESC LIMIT :limit;

-- name: by_start
{{columns}}
WHERE (r.started_at, r.id) > (CAST(:value AS {{big}}), CAST(:after AS {{big}}))
  AND {{wanted}}
ORDER BY r.started_at, r.id LIMIT :limit;

-- name: by_start_descending
{{columns}}
WHERE (r.started_at, r.id) < (CAST(:value AS {{big}}), CAST(:after AS {{big}}))
  AND {{wanted}}
ORDER BY r.started_at DESC, r.id DESC LIMIT :limit;

-- name: by_duration
{{columns}}
WHERE {{duration}} >= CAST(:value AS {{big}})
  AND ({{duration}} > CAST(:value AS {{big}}) OR r.id > CAST(:after AS {{big}}))
  AND r.ended_at IS NOT NULL AND {{wanted}}
ORDER BY {{duration}}, r.id LIMIT :limit;

-- name: by_duration_descending
{{columns}}
WHERE {{duration}} <= CAST(:value AS {{big}})
  AND ({{duration}} < CAST(:value AS {{big}}) OR r.id < CAST(:after AS {{big}}))
  AND r.ended_at IS NOT NULL AND {{wanted}}
ORDER BY {{duration}} DESC, r.id DESC LIMIT :limit;

-- name: by_metric
{{measured}}
  AND (s.value, s.run_id) > (CAST(:value AS {{real}}), CAST(:after AS {{big}}))
  AND {{wanted}}
ORDER BY s.value, s.run_id LIMIT :limit;

-- name: by_metric_descending
{{measured}}
  AND (s.value, s.run_id) < (CAST(:value AS {{real}}), CAST(:after AS {{big}}))
  AND {{wanted}}
ORDER BY s.value DESC, s.run_id DESC LIMIT :limit;

-- No index has the parameters, of which every experiment has others: all runs that match are read.
-- part: given
(SELECT m.value FROM {{parameters}} AS m WHERE m.name = :metric)

-- part: with_parameter
SELECT {{fields}}, {{given}} AS measured
FROM runs r LEFT JOIN sweeps w ON w.id = r.sweep_id

-- name: by_parameter
{{with_parameter}}
WHERE ({{given}}, r.id) > (CAST(:value AS {{real}}), CAST(:after AS {{big}}))
  AND {{wanted}}
ORDER BY {{given}}, r.id LIMIT :limit;

-- name: by_parameter_descending
{{with_parameter}}
WHERE ({{given}}, r.id) < (CAST(:value AS {{real}}), CAST(:after AS {{big}}))
  AND {{wanted}}
ORDER BY {{given}} DESC, r.id DESC LIMIT :limit;

-- name: without_parameter
{{columns}}
WHERE r.id < CAST(:after AS {{big}}) AND {{given}} IS NULL
  AND {{wanted}}
ORDER BY r.id DESC LIMIT :limit;

-- name: unended
{{columns}}
WHERE r.id < CAST(:after AS {{big}}) AND r.ended_at IS NULL
  AND {{wanted}}
ORDER BY r.id DESC LIMIT :limit;

-- name: unmeasured
{{columns}}
WHERE r.id < CAST(:after AS {{big}})
  AND NOT EXISTS (SELECT 1 FROM run_latest_metrics s WHERE s.run_id = r.id AND s.name = :metric AND s.value IS NOT NULL)
  AND {{wanted}}
ORDER BY r.id DESC LIMIT :limit;

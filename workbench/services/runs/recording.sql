-- name: next_step
SELECT COALESCE(MAX(step) + 1, 0) AS step FROM run_metrics WHERE run_id = :run AND name = :name;

-- part: values
(run_id, name, step, at, value, text)
VALUES (:run, :name, :step, :now, CAST(:value AS {{real}}), CAST(:text AS TEXT))

-- name: remove
DELETE FROM run_metrics WHERE run_id = :run AND name = :name AND step = :step;

-- name: add
INSERT INTO run_metrics {{values}};

-- name: add_latest
INSERT INTO run_latest_metrics {{values}}
ON CONFLICT (run_id, name) DO UPDATE
    SET step = excluded.step, at = excluded.at, value = excluded.value, text = excluded.text
    WHERE excluded.step >= run_latest_metrics.step;

-- name: note
UPDATE runs SET metrics = metrics + :count, recorded_at = :now WHERE id = :id
RETURNING metrics, announced_at;

-- name: announced
UPDATE runs SET announced_at = recorded_at WHERE id = :id;

-- name: unannounced
SELECT id, session_id, sweep_id, metrics FROM runs WHERE recorded_at > announced_at ORDER BY id;

-- name: counts
SELECT name, COUNT(*) AS count FROM run_metrics WHERE run_id = :run GROUP BY name ORDER BY name;

-- name: points
SELECT step, value, text
FROM (SELECT step, value, text, ROW_NUMBER() OVER (ORDER BY step) - 1 AS number FROM run_metrics
    WHERE run_id = :run AND name = :name) AS numbered
WHERE number % CAST(:every AS {{big}}) = 0 OR number = :last
ORDER BY step;

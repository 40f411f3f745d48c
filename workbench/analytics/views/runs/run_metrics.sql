CREATE VIEW run_metrics AS
SELECT m.run_id, r.name AS run, r.sweep, m.name, m.step,
    CASE m.text WHEN 'NaN' THEN CAST('nan' AS DOUBLE) WHEN 'Infinity' THEN CAST('inf' AS DOUBLE)
        WHEN '-Infinity' THEN CAST('-inf' AS DOUBLE) ELSE m.value END AS value,
    CASE WHEN m.text NOT IN ('NaN', 'Infinity', '-Infinity') THEN m.text END AS text,
    m.step = MAX(m.step) OVER (PARTITION BY m.run_id, m.name) AS is_last,
    make_timestamptz(m.at_us) AS recorded_at
FROM raw_run_metrics m
JOIN raw_runs r ON r.id = m.run_id;

COMMENT ON VIEW run_metrics IS 'What runs recorded: a row for each value.';
COMMENT ON COLUMN run_metrics.run_id IS 'The run.';
COMMENT ON COLUMN run_metrics.run IS 'Its name.';
COMMENT ON COLUMN run_metrics.sweep IS 'The sweep that it is a run of.';
COMMENT ON COLUMN run_metrics.name IS 'The metric.';
COMMENT ON COLUMN run_metrics.step IS 'The step in the series of this metric.';
COMMENT ON COLUMN run_metrics.value IS 'The number; null: it is text.';
COMMENT ON COLUMN run_metrics.text IS 'The text; null: it is a number.';
COMMENT ON COLUMN run_metrics.is_last IS 'Whether it is the last value of its series.';
COMMENT ON COLUMN run_metrics.recorded_at IS 'When it was recorded.';

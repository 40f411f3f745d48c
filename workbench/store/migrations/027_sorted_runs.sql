-- Runs are sorted by name, duration and metrics along indexes, page by page.

CREATE INDEX runs_by_name ON runs (name{{postgres}} COLLATE "C"{{end}}, id);
CREATE INDEX runs_by_duration ON runs (CAST(ended_at - started_at AS {{big}}), id) WHERE ended_at IS NOT NULL;
DROP INDEX run_latest_metrics_by_value;
CREATE INDEX run_latest_metrics_by_value ON run_latest_metrics (name, value, run_id) WHERE value IS NOT NULL;

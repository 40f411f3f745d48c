-- How far the project has told an OpenTelemetry collector what happened: the last event, and the last request to a model,
-- that it has. There is a row once the first collector is set. seed: makes the ids of spans. totals: what the requests up
-- to spending_id used, as JSON, since a time. error_code: why it could not be told last; null: it could. failures: how
-- often in a row.

CREATE TABLE telemetry (
    one {{big}} PRIMARY KEY CHECK (one = 1),
    seed TEXT NOT NULL,
    event_id {{big}} NOT NULL,
    spending_id {{big}} NOT NULL,
    totals TEXT NOT NULL,
    since {{big}} NOT NULL,
    spans {{big}} NOT NULL DEFAULT 0,
    refused {{big}} NOT NULL DEFAULT 0,
    exported_at {{big}},
    metrics_at {{big}} NOT NULL DEFAULT 0,
    failures {{big}} NOT NULL DEFAULT 0,
    failed_at {{big}},
    error_code TEXT,
    error TEXT
) {{strict}};

-- report: identifies what a program has told of a request, which it may send twice.
ALTER TABLE spending ADD COLUMN report TEXT;
CREATE UNIQUE INDEX spending_by_report ON spending (report, agent_id) WHERE report IS NOT NULL;

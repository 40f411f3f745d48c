-- Values that runs recorded have ids in the order in which they were recorded, so that those who follow them read only
-- the newer ones. A value that replaces another gets an id of its own.
CREATE TABLE numbered_metrics (
    id {{id}},
    run_id {{big}} NOT NULL REFERENCES runs (id),
    name TEXT NOT NULL,
    step {{big}} NOT NULL,
    at {{big}} NOT NULL,
    value {{real}},
    text TEXT,
    UNIQUE (run_id, name, step)
) {{strict}};
INSERT INTO numbered_metrics (run_id, name, step, at, value, text)
SELECT run_id, name, step, at, value, text FROM run_metrics ORDER BY run_id, name, step;
DROP TABLE run_metrics;
ALTER TABLE numbered_metrics RENAME TO run_metrics;

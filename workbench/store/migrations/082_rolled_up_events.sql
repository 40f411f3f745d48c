-- Old events as Parquet files, each with those from first_id to last_id, which have no rows any more. events: how many.
-- sha256: of the file.

CREATE TABLE rolled_up_events (
    last_id {{big}} PRIMARY KEY,
    first_id {{big}} NOT NULL,
    first_at {{big}} NOT NULL,
    last_at {{big}} NOT NULL,
    events {{big}} NOT NULL,
    sha256 TEXT NOT NULL,
    parquet {{sqlite}}BLOB{{end}}{{postgres}}BYTEA{{end}} NOT NULL
) {{strict}};

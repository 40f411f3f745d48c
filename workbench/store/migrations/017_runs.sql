-- Runs of experiments: what was run with which parameters, what it measured, and what it left.

-- A notebook to be run with many parameters. specification: JSON, what was asked for. closed_at: no more of its runs start.
CREATE TABLE sweeps (
    id {{id}},
    name TEXT NOT NULL UNIQUE,
    notebook TEXT NOT NULL,
    notebook_sha256 TEXT NOT NULL,
    specification TEXT NOT NULL,
    created_at {{big}} NOT NULL,
    created_by TEXT NOT NULL,
    closed_at {{big}}
) {{strict}};

-- key: of a run of a sweep, what tells it from the others of the sweep; else a UUID. parameters, definitions (their
-- content hashes by name) and environment: JSON objects. git_dirty: tracked files differed from git_commit; null: there
-- is no repository. output: path of the executed notebook, relative to the project. tries: how often it was started.
-- process: the process that records it, by machine, pid and start time; null: nobody watches it. lost: that process ended
-- before the run did. metrics: how many values it has recorded. recorded_at, announced_at: of the newest value, and of the event
-- that announced some.
CREATE TABLE runs (
    id {{id}},
    key TEXT NOT NULL UNIQUE,
    sweep_id {{big}} REFERENCES sweeps (id),
    name TEXT NOT NULL,
    notebook TEXT,
    parameters TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'completed', 'failed', 'cancelled', 'lost')),
    error_code TEXT,
    error TEXT,
    session_id TEXT REFERENCES sessions (id),
    git_commit TEXT,
    git_dirty {{big}},
    definitions TEXT NOT NULL,
    environment TEXT NOT NULL,
    output TEXT,
    tries {{big}} NOT NULL DEFAULT 1,
    process TEXT,
    metrics {{big}} NOT NULL DEFAULT 0,
    notes TEXT NOT NULL DEFAULT '',
    created_by TEXT NOT NULL,
    created_at {{big}} NOT NULL,
    started_at {{big}} NOT NULL,
    ended_at {{big}},
    recorded_at {{big}} NOT NULL DEFAULT 0,
    announced_at {{big}} NOT NULL DEFAULT 0,
    archived_at {{big}}
) {{strict}};
CREATE INDEX runs_by_sweep ON runs (sweep_id, id) WHERE sweep_id IS NOT NULL;
CREATE INDEX runs_by_state ON runs (state, id);
CREATE INDEX runs_by_start ON runs (started_at, id);
CREATE INDEX runs_unannounced ON runs (id) WHERE recorded_at > announced_at;

-- What runs recorded, a series of steps for each name. A value is a number, or a short text; NaN, Infinity and -Infinity
-- are texts.
CREATE TABLE run_metrics (
    run_id {{big}} NOT NULL REFERENCES runs (id),
    name TEXT NOT NULL,
    step {{big}} NOT NULL,
    at {{big}} NOT NULL,
    value {{real}},
    text TEXT,
    PRIMARY KEY (run_id, name, step)
) {{strict}};

-- Of each series the value with the highest step, by which runs are listed, sorted and filtered.
CREATE TABLE run_latest_metrics (
    run_id {{big}} NOT NULL REFERENCES runs (id),
    name TEXT NOT NULL,
    step {{big}} NOT NULL,
    at {{big}} NOT NULL,
    value {{real}},
    text TEXT,
    PRIMARY KEY (run_id, name)
) {{strict}};
CREATE INDEX run_latest_metrics_by_value ON run_latest_metrics (name, value);

CREATE TABLE run_tags (
    run_id {{big}} NOT NULL REFERENCES runs (id),
    tag TEXT NOT NULL,
    PRIMARY KEY (run_id, tag)
) {{strict}};
CREATE INDEX run_tags_by_tag ON run_tags (tag, run_id);

-- Files that runs made. path: relative to the project. bytes, sha256: when it was added.
CREATE TABLE run_artifacts (
    run_id {{big}} NOT NULL REFERENCES runs (id),
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    media_type TEXT NOT NULL,
    bytes {{big}} NOT NULL,
    sha256 TEXT NOT NULL,
    added_at {{big}} NOT NULL,
    PRIMARY KEY (run_id, name)
) {{strict}};

-- Plans that are carried out at a time of day, at intervals, or both, and the last execution of each. at: local, HH:MM.
-- every: day, weekday or hours such as 6h; null: once. options: staff, integrate, budget, until and partly, as JSON.
-- next_at: null: no start is left. due_at, started_at, …: of the last execution; process: null until it is started;
-- starts: how often it was started, because it ended without an account; ended_at null: it is under way.
CREATE TABLE schedules (
    plan TEXT PRIMARY KEY,
    at TEXT,
    every TEXT,
    missed TEXT NOT NULL CHECK (missed IN ('run', 'skip')),
    options TEXT NOT NULL,
    set_at {{big}} NOT NULL,
    next_at {{big}},
    due_at {{big}},
    started_at {{big}},
    until_at {{big}},
    process TEXT,
    starts {{big}} NOT NULL DEFAULT 0,
    ended_at {{big}},
    status {{big}},
    outcome TEXT
) {{strict}};
CREATE INDEX schedules_by_next ON schedules (next_at) WHERE next_at IS NOT NULL;

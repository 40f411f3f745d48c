-- When a task is done, and the check that tells, as JSON: a command, or a mapping with it. What tells that a completed
-- one is done. Checks of attempts: try 1 is the first run; metrics as JSON are what the check measured; ending: how an
-- attempt without a supervisor ends if it passes, as JSON.

ALTER TABLE tasks ADD COLUMN check_stated TEXT;
ALTER TABLE tasks ADD COLUMN done_when TEXT;
ALTER TABLE personas ADD COLUMN check_stated TEXT;
ALTER TABLE task_status ADD COLUMN evidence TEXT;

CREATE TABLE attempt_checks (
    task_id {{big}} NOT NULL,
    attempt {{big}} NOT NULL,
    check_stated TEXT NOT NULL,
    commit_hash TEXT,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'passed', 'flaky', 'failed')),
    tries {{big}} NOT NULL DEFAULT 0,
    exit_code {{big}},
    asked_at {{big}} NOT NULL,
    started_at {{big}},
    ended_at {{big}},
    output TEXT NOT NULL DEFAULT '',
    metrics TEXT,
    ending TEXT,
    PRIMARY KEY (task_id, attempt),
    FOREIGN KEY (task_id, attempt) REFERENCES task_attempts (task_id, attempt)
) {{strict}};
CREATE INDEX attempt_checks_under_way ON attempt_checks (state) WHERE state IN ('waiting', 'running');

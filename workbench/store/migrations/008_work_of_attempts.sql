-- The work of supervised attempts: where each began, how its command asked it to end, and what was kept of it.

CREATE TABLE attempt_work (
    task_id {{big}} NOT NULL REFERENCES tasks (id),
    attempt {{big}} NOT NULL,
    agent_id TEXT NOT NULL REFERENCES agents (id),
    key_hash TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'open', 'over')),
    worktree TEXT,
    waits_for TEXT,
    base_commit TEXT,
    requested_end TEXT,
    kept_commit TEXT,
    commits {{big}},
    files {{big}},
    bytes {{big}},
    problem TEXT,
    tried_at {{big}},
    over_at {{big}},
    PRIMARY KEY (task_id, attempt)
) {{strict}};

CREATE INDEX attempt_work_open ON attempt_work (worktree, state) WHERE state = 'open';
CREATE INDEX attempt_work_kept ON attempt_work (over_at) WHERE kept_commit IS NOT NULL;

-- Tasks in sessions, what a failed dependency means, errors that are never retried; plans and personas with
-- their versions (spec 3).

ALTER TABLE tasks ADD COLUMN session_id TEXT REFERENCES sessions (id);
-- What it means for a task that one it depends on has failed or was cancelled.
ALTER TABLE tasks ADD COLUMN on_failure TEXT NOT NULL DEFAULT 'block'
    CHECK (on_failure IN ('block', 'cancel', 'ignore'));
ALTER TABLE tasks ADD COLUMN no_retry TEXT NOT NULL DEFAULT '[]';
CREATE INDEX tasks_by_session ON tasks (session_id, id) WHERE session_id IS NOT NULL;

-- session_id ('' for none) repeats what tasks say: it is a key of a claim, as persona and worktree are.
ALTER TABLE task_status ADD COLUMN session_id TEXT NOT NULL DEFAULT '';
DROP INDEX tasks_ready;
CREATE INDEX tasks_ready ON task_status (persona_id, worktree, session_id, priority DESC, task_id)
    WHERE status = 'pending' AND unmet = 0 AND not_before IS NULL AND reserved_for IS NULL;
CREATE INDEX tasks_by_priority ON task_status (priority DESC, task_id);
CREATE INDEX tasks_by_worktree ON task_status (worktree, task_id) WHERE worktree <> '';

ALTER TABLE task_attempts ADD COLUMN error_class TEXT;

CREATE TABLE plans (
    name TEXT PRIMARY KEY,
    sha256 TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at {{big}} NOT NULL,
    updated_at {{big}} NOT NULL
) {{strict}};
INSERT INTO plans (name, sha256, created_by, created_at, updated_at)
    SELECT plan, '', MIN(created_by), MIN(created_at), MIN(created_at) FROM tasks WHERE plan IS NOT NULL GROUP BY plan;

ALTER TABLE personas ADD COLUMN lease_us {{big}};

-- Every text a persona ever had: an attempt can be explained by what its agent was told then.
CREATE TABLE persona_versions (
    persona_id TEXT NOT NULL REFERENCES personas (id),
    sha256 TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    definition TEXT NOT NULL,
    source TEXT NOT NULL,
    saved_by TEXT NOT NULL,
    saved_at {{big}} NOT NULL,
    PRIMARY KEY (persona_id, sha256)
) {{strict}};
INSERT INTO persona_versions (persona_id, sha256, name, role, definition, source, saved_by, saved_at)
    SELECT id, sha256, name, role, definition, source, 'system', updated_at FROM personas;

-- The machines that share the project's database. identity: of a clone of the repository on a host; home: its directory.
-- On SQLite there is one, and nobody needs to know its name: the table stays empty.
CREATE TABLE machines (
    name TEXT PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    home TEXT NOT NULL,
    joined_at {{big}} NOT NULL
) {{strict}};

-- Servers of the project. process: as `runs` has it. seen_at: its last sign of life. ended_at: null: it did not say that
-- it ended.
CREATE TABLE servers (
    nonce TEXT PRIMARY KEY,
    machine TEXT NOT NULL,
    process TEXT NOT NULL,
    url TEXT NOT NULL,
    started_at {{big}} NOT NULL,
    seen_at {{big}} NOT NULL,
    ended_at {{big}}
) {{strict}};

-- The server that performs what must be done once in a project, and until when that is its turn if it gives no sign.
CREATE TABLE turn_of_server (
    one {{big}} PRIMARY KEY CHECK (one = 1),
    server TEXT NOT NULL,
    until {{big}} NOT NULL
) {{strict}};

-- machine: which one has the files or the process, or does the work; empty: made before machines had names.
ALTER TABLE worktrees ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE worktree_steps ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE closed_worktrees ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE spawns ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE task_attempts ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE schedules ADD COLUMN machine TEXT NOT NULL DEFAULT '';
-- end_asked: why another machine asked to end the agent's process; null: none has.
ALTER TABLE spawns ADD COLUMN end_asked TEXT;

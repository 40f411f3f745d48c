-- Scarce things. needs: what a task has to have while it is done, as JSON; null: what its persona needs. leased: what an
-- attempt was given, as JSON.

ALTER TABLE task_status ADD COLUMN needs TEXT;
ALTER TABLE personas ADD COLUMN needs TEXT;
ALTER TABLE task_attempts ADD COLUMN leased TEXT;
CREATE INDEX tasks_with_needs ON task_status (needs) WHERE status = 'pending' AND needs IS NOT NULL;

-- What the project has: a GPU by its device, everything else by its amount. memory and vram in bytes. problem: why it
-- cannot be lent.
CREATE TABLE resources (
    name TEXT NOT NULL,
    device TEXT NOT NULL DEFAULT '',
    amount {{big}} NOT NULL,
    vram {{big}},
    problem TEXT,
    PRIMARY KEY (name, device)
) {{strict}};

-- What attempts hold. A row counts while its attempt is open. name: as in `resources`, or alone, of the device machine.
CREATE TABLE resource_leases (
    task_id {{big}} NOT NULL,
    attempt {{big}} NOT NULL,
    name TEXT NOT NULL,
    device TEXT NOT NULL DEFAULT '',
    amount {{big}} NOT NULL,
    PRIMARY KEY (task_id, attempt, name, device),
    FOREIGN KEY (task_id, attempt) REFERENCES task_attempts (task_id, attempt)
) {{strict}};
CREATE UNIQUE INDEX one_holder_of_a_device ON resource_leases (name, device) WHERE device <> '';

-- Tasks whose needs could not be met when an agent that can do them asked for work: since when, and when it asked last.
CREATE TABLE resource_waits (
    task_id {{big}} PRIMARY KEY REFERENCES tasks (id),
    since {{big}} NOT NULL,
    asked_at {{big}} NOT NULL
) {{strict}};

-- Machines that have no clone of the project, by the token that enlists their workers. used_at: when it last enlisted one.
CREATE TABLE machine_tokens (
    name TEXT PRIMARY KEY,
    token_hash TEXT NOT NULL UNIQUE,
    added_by TEXT NOT NULL,
    added_at {{big}} NOT NULL,
    used_at {{big}}
) {{strict}};

-- Workers that such a machine has enlisted.
CREATE TABLE machine_workers (
    agent_id TEXT PRIMARY KEY REFERENCES agents (id),
    machine TEXT NOT NULL
) {{strict}};
CREATE INDEX workers_of_machine ON machine_workers (machine);

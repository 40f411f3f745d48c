-- What agents' processes used, with all their descendants, at moments while that changed. Older samples are fewer.

CREATE TABLE process_samples (
    id {{id}},
    agent_id TEXT NOT NULL REFERENCES agents (id),
    pid {{big}} NOT NULL,
    at {{big}} NOT NULL,
    cpu_seconds {{real}} NOT NULL,
    memory_bytes {{big}} NOT NULL,
    processes {{big}} NOT NULL
) {{strict}};
CREATE INDEX process_samples_of_agent ON process_samples (agent_id, at);
CREATE INDEX process_samples_by_time ON process_samples (at);

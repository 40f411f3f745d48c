-- Programs of MCP servers and kernels of runs are sampled as agents' processes are. kind: whose the process is. owner: the
-- internal id of the agent, the name of the server, or the id of the run.

CREATE TABLE samples_of_all (
    id {{id}},
    kind TEXT NOT NULL CHECK (kind IN ('agent', 'tool server', 'run')),
    owner TEXT NOT NULL,
    pid {{big}} NOT NULL,
    at {{big}} NOT NULL,
    cpu_seconds {{real}} NOT NULL,
    memory_bytes {{big}} NOT NULL,
    processes {{big}} NOT NULL
) {{strict}};
INSERT INTO samples_of_all (kind, owner, pid, at, cpu_seconds, memory_bytes, processes)
SELECT 'agent', agent_id, pid, at, cpu_seconds, memory_bytes, processes FROM process_samples ORDER BY id;
DROP TABLE process_samples;
ALTER TABLE samples_of_all RENAME TO process_samples;
CREATE INDEX process_samples_of_owner ON process_samples (kind, owner, at);
CREATE INDEX process_samples_by_time ON process_samples (at);

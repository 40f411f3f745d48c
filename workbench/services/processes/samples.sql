-- name: running
SELECT p.agent_id, p.pid, p.started, p.mark, l.cpu_seconds, l.memory_bytes, l.processes
FROM processes p
LEFT JOIN process_samples l ON l.pid = p.pid AND l.id = (
    SELECT s.id FROM process_samples s WHERE s.agent_id = p.agent_id ORDER BY s.at DESC, s.id DESC LIMIT 1
)
WHERE p.pid IS NOT NULL AND p.ended_at IS NULL
ORDER BY p.spawned_at, p.agent_id;

-- name: add
INSERT INTO process_samples (agent_id, pid, at, cpu_seconds, memory_bytes, processes)
VALUES (:agent, :pid, :now, :cpu_seconds, :memory_bytes, :processes);

-- name: forget
DELETE FROM process_samples WHERE at < :before;

-- name: thin
-- Of each process, the first sample of a minute stays.
DELETE FROM process_samples WHERE at < :before AND EXISTS (
    SELECT 1 FROM process_samples e WHERE e.agent_id = process_samples.agent_id AND e.pid = process_samples.pid
        AND e.at < process_samples.at AND e.at >= process_samples.at - process_samples.at % 60000000
);

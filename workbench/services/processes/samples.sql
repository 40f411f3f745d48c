-- name: agents
SELECT p.agent_id, p.pid, p.started, p.mark FROM processes p LEFT JOIN spawns s ON s.agent_id = p.agent_id
WHERE p.pid IS NOT NULL AND p.ended_at IS NULL AND (CAST(:machine AS TEXT) IS NULL OR s.machine = :machine)
ORDER BY p.spawned_at, p.agent_id;

-- name: runs
SELECT id, key, sweep_id, process FROM runs WHERE state = 'running' AND process IS NOT NULL ORDER BY id;

-- name: last
SELECT pid, cpu_seconds, memory_bytes, processes FROM process_samples
WHERE kind = :kind AND owner = :owner ORDER BY at DESC, id DESC LIMIT 1;

-- name: add
INSERT INTO process_samples (kind, owner, pid, at, cpu_seconds, memory_bytes, processes)
VALUES (:kind, :owner, :pid, :now, :cpu_seconds, :memory_bytes, :processes);

-- name: forget
DELETE FROM process_samples WHERE at < :before;

-- name: thin
-- Of each process, the first sample of a minute stays.
DELETE FROM process_samples WHERE at < :before AND EXISTS (
    SELECT 1 FROM process_samples e WHERE e.kind = process_samples.kind
        AND e.owner = process_samples.owner AND e.pid = process_samples.pid
        AND e.at < process_samples.at AND e.at >= process_samples.at - process_samples.at % 60000000
);

-- name: working
-- Agents with processes and the task that each holds, the signs of life that are stored, and the processor's seconds that
-- the process has used since a time; null: it was not measured then.
SELECT p.agent_id, a.assigned_agent_id AS agent, k.task_id, k.attempt, s.since AS silent_since,
    t.claimed_at,
    (SELECT MAX(e.at) FROM spending e WHERE e.task_id = k.task_id AND e.attempt = k.attempt) AS asked_at,
    (SELECT e.at FROM transcript e
     WHERE e.task_id = k.task_id AND e.attempt = k.attempt ORDER BY e.id DESC LIMIT 1) AS answered_at,
    (SELECT e.cpu_seconds FROM process_samples e
     WHERE e.kind = 'agent' AND e.owner = p.agent_id AND e.pid = p.pid ORDER BY e.at DESC, e.id DESC LIMIT 1)
    - (SELECT e.cpu_seconds FROM process_samples e
       WHERE e.kind = 'agent' AND e.owner = p.agent_id AND e.pid = p.pid AND e.at <= :since
       ORDER BY e.at DESC, e.id DESC LIMIT 1) AS worked
FROM processes p
JOIN agents a ON a.id = p.agent_id
JOIN task_status k ON k.assigned_agent_id = p.agent_id AND k.status IN ('claimed', 'in_progress')
JOIN task_attempts t ON t.task_id = k.task_id AND t.attempt = k.attempt
LEFT JOIN silent_agents s ON s.agent_id = p.agent_id AND s.task_id = k.task_id AND s.attempt = k.attempt
LEFT JOIN spawns n ON n.agent_id = p.agent_id
WHERE p.ended_at IS NULL AND (CAST(:machine AS TEXT) IS NULL OR COALESCE(n.machine, :machine) = :machine)
ORDER BY k.task_id;

-- name: marked
SELECT s.agent_id, a.assigned_agent_id AS agent FROM silent_agents s JOIN agents a ON a.id = s.agent_id
LEFT JOIN spawns n ON n.agent_id = s.agent_id
WHERE CAST(:machine AS TEXT) IS NULL OR COALESCE(n.machine, :machine) = :machine;

-- name: mark
INSERT INTO silent_agents (agent_id, task_id, attempt, since) VALUES (:agent_id, :task_id, :attempt, :since)
ON CONFLICT (agent_id) DO UPDATE SET task_id = excluded.task_id, attempt = excluded.attempt, since = excluded.since;

-- name: unmark
DELETE FROM silent_agents WHERE agent_id = :agent_id;

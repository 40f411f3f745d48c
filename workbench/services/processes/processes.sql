-- name: of_agent
SELECT s.agent_id, s.profile, s.request, s.confinement, s.state, s.asked_at, s.scratch, s.machine,
    COALESCE(p.reason, s.reason) AS reason, p.pid, p.started, p.mark, p.spawned_at, p.ended_at, p.exit_code,
    a.assigned_worktree AS worktree, d.name AS definition, p.definition_hash, p.prompt_hash, p.include,
    (SELECT COUNT(*) FROM spawns w WHERE w.state = 'queued' AND s.state = 'queued' AND w.machine = s.machine
        AND (w.asked_at < s.asked_at OR (w.asked_at = s.asked_at AND w.agent_id <= s.agent_id))) AS place
FROM spawns s
JOIN agents a ON a.id = s.agent_id
LEFT JOIN processes p ON p.agent_id = s.agent_id
LEFT JOIN definitions d ON d.id = a.definition_id
WHERE s.agent_id = :agent;

-- name: elsewhere
-- The same of a worker that a machine without a clone has started: its process is known there only. Its log is where
-- its worktree is.
SELECT w.agent_id, w.profile, w.machine AS elsewhere, t.machine, a.assigned_worktree AS worktree,
    a.registered_at AS asked_at, CASE WHEN a.registration_status = 'active' THEN 'there' ELSE 'left' END AS state,
    NULL AS reason, NULL AS pid, NULL AS spawned_at, NULL AS ended_at, NULL AS exit_code, NULL AS definition,
    NULL AS definition_hash, NULL AS prompt_hash, NULL AS include
FROM machine_workers w
JOIN agents a ON a.id = w.agent_id
LEFT JOIN worktrees t ON t.name = a.assigned_worktree AND t.status = 'active'
WHERE w.agent_id = :agent AND NOT EXISTS (SELECT 1 FROM spawns s WHERE s.agent_id = w.agent_id);

-- name: managed
SELECT a.*, (SELECT q.since FROM silent_agents q WHERE q.agent_id = a.id) AS silent_since,
    COALESCE((SELECT 'elsewhere:' || m.machine FROM machine_workers m WHERE m.agent_id = a.id), s.machine) AS machine
FROM agents_seen a JOIN spawns s ON s.agent_id = a.id
WHERE a.deleted_at IS NULL AND (CAST(:parent AS TEXT) IS NULL OR a.parent_agent_id = :parent)
ORDER BY a.registered_at, a.id;

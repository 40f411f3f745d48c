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

-- name: managed
SELECT a.*, (SELECT q.since FROM silent_agents q WHERE q.agent_id = a.id) AS silent_since
FROM agents_seen a JOIN spawns s ON s.agent_id = a.id
WHERE a.deleted_at IS NULL AND (CAST(:parent AS TEXT) IS NULL OR a.parent_agent_id = :parent)
ORDER BY a.registered_at, a.id;

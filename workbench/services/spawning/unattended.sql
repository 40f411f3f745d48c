-- part: kinds
(SELECT s.persona_id, s.worktree, s.session_id, s.reserved_for, CASE WHEN t.run IS NULL THEN 0 ELSE 1 END AS has_command,
    COUNT(*) AS n
FROM task_status s JOIN tasks t ON t.id = s.task_id
WHERE s.status = 'pending' AND s.unmet = 0
  AND (CAST(:task_id AS BIGINT) IS NULL OR s.task_id IN (
    WITH RECURSIVE needed (id) AS (
        SELECT CAST(:task_id AS BIGINT)
        UNION SELECT d.depends_on FROM task_dependencies d JOIN needed n ON d.task_id = n.id)
    SELECT id FROM needed))
GROUP BY s.persona_id, s.worktree, s.session_id, s.reserved_for, CASE WHEN t.run IS NULL THEN 0 ELSE 1 END) k

-- part: fits
a.deleted_at IS NULL AND a.tool = 'write' AND k.session_id IN ('', COALESCE(a.session_id, ''))
  AND (k.has_command = 1 OR a.capabilities NOT LIKE '%"commands_only": true%')
  AND CASE WHEN k.reserved_for IS NULL
      THEN a.persona_id = k.persona_id AND k.worktree IN ('', COALESCE(a.assigned_worktree, ''))
      ELSE a.id = k.reserved_for END

-- part: unattended
NOT EXISTS (
    SELECT 1 FROM agents a
    LEFT JOIN spawns w ON w.agent_id = a.id
    LEFT JOIN processes p ON p.agent_id = a.id AND p.ended_at IS NULL AND p.reason IS NULL
    WHERE {{fits}}
      AND (a.registration_status = 'active' OR w.state IN ('queued', 'starting') OR p.agent_id IS NOT NULL))

-- name: kinds
SELECT k.persona_id, k.worktree, r.assigned_agent_id AS agent, SUM(k.n) AS n
FROM {{kinds}} LEFT JOIN agents r ON r.id = k.reserved_for
WHERE {{unattended}}
GROUP BY k.persona_id, k.worktree, r.assigned_agent_id ORDER BY n DESC, k.persona_id, k.worktree, agent;

-- name: restartable
-- The newest of each kind: one in a worktree, elsewhere no more than there are tasks. Each run of a plan leaves some.
SELECT DISTINCT assigned_agent_id, machine FROM (
    SELECT a.assigned_agent_id, s.machine, CASE WHEN k.worktree = '' THEN k.n ELSE 1 END AS needed,
        ROW_NUMBER() OVER (
            PARTITION BY k.persona_id, k.worktree, k.session_id, k.reserved_for, k.has_command, s.machine
            ORDER BY a.registered_at DESC, a.id DESC) AS place
    FROM {{kinds}}
    JOIN agents a ON {{fits}}
    JOIN spawns s ON s.agent_id = a.id AND s.state IN ('started', 'given_up')
    LEFT JOIN processes p ON p.agent_id = a.id AND p.ended_at IS NULL
    LEFT JOIN worktrees w ON w.name = a.assigned_worktree
    WHERE {{unattended}} AND p.agent_id IS NULL AND a.registration_status IN ('assigned', 'inactive')
      AND (w.name IS NULL OR w.status = 'active')) fitting
WHERE place <= needed ORDER BY assigned_agent_id LIMIT 100;

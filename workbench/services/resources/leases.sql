-- name: is_any
-- SQLite would look through all that are pending.
SELECT 1 AS found WHERE EXISTS (
        SELECT 1 FROM task_status {{sqlite}}INDEXED BY tasks_with_needs{{end}} WHERE status = 'pending' AND needs IS NOT NULL
    )
    OR EXISTS (SELECT 1 FROM resource_leases) OR EXISTS (SELECT 1 FROM personas WHERE needs IS NOT NULL);

-- name: held
-- Leases of open attempts.
SELECT l.task_id, l.attempt, l.name, l.device, l.amount, x.agent_id, x.claimed_at
FROM resource_leases l
JOIN task_attempts x ON x.task_id = l.task_id AND x.attempt = l.attempt
WHERE x.ended_at IS NULL AND (l.machine = :machine OR (CAST(:machine AS TEXT) IS NULL AND l.machine NOT LIKE 'elsewhere:%')) ORDER BY l.task_id, l.name, l.device;

-- name: forget_ended
DELETE FROM resource_leases WHERE NOT EXISTS (
    SELECT 1 FROM task_attempts x WHERE x.task_id = resource_leases.task_id
    AND x.attempt = resource_leases.attempt AND x.ended_at IS NULL);

-- name: add
INSERT INTO resource_leases (task_id, attempt, name, device, amount, machine)
VALUES (:task_id, :attempt, :name, :device, :amount, :machine);

-- name: record
UPDATE task_attempts SET leased = :leased WHERE task_id = :task_id AND attempt = :attempt;

-- name: leased_to
SELECT leased FROM task_attempts WHERE task_id = :task_id AND attempt = :attempt;

-- name: taken_gpus
SELECT l.device AS gpu FROM resource_leases l
JOIN task_attempts x ON x.task_id = l.task_id AND x.attempt = l.attempt
WHERE l.name = 'gpu' AND x.ended_at IS NULL AND (l.machine = :machine OR (CAST(:machine AS TEXT) IS NULL AND l.machine NOT LIKE 'elsewhere:%'))
UNION
SELECT s.gpu FROM spawns s LEFT JOIN processes p ON p.agent_id = s.agent_id
WHERE s.gpu IS NOT NULL AND s.agent_id <> :agent AND (CAST(:machine AS TEXT) IS NULL OR s.machine = :machine)
    AND (s.state = 'starting' OR (p.agent_id IS NOT NULL AND p.ended_at IS NULL));

-- name: computing
-- Attempts under way. The holder of a task with open subtasks waits for them.
SELECT COUNT(*) AS n FROM task_status s
WHERE s.status IN ('claimed', 'in_progress')
  AND CASE WHEN CAST(:machine AS TEXT) LIKE 'elsewhere:%'
    THEN EXISTS (SELECT 1 FROM machine_workers m WHERE m.agent_id = s.assigned_agent_id AND 'elsewhere:' || m.machine = :machine)
    ELSE NOT EXISTS (SELECT 1 FROM machine_workers m WHERE m.agent_id = s.assigned_agent_id)
        AND (CAST(:machine AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM task_attempts x
            WHERE x.task_id = s.task_id AND x.attempt = s.attempt AND x.machine = :machine)) END
  AND NOT EXISTS (
    SELECT 1 FROM tasks c JOIN task_status o ON o.task_id = c.id
    WHERE c.parent_id = s.task_id AND o.status IN ('pending', 'claimed', 'in_progress'));

-- name: needs_of
SELECT COALESCE(s.needs, p.needs, '') AS needs FROM task_status s
LEFT JOIN personas p ON p.id = s.persona_id WHERE s.task_id = :task_id;

-- name: place_of
-- Where a task is done: nowhere else than in its worktree, which may be that of a worker of a machine without a clone.
SELECT s.worktree, (SELECT MIN(w.machine) FROM machine_workers w JOIN agents a ON a.id = w.agent_id
    WHERE w.worktree = s.worktree AND s.worktree <> '' AND a.deleted_at IS NULL
      AND a.registration_status NOT IN ('rejected', 'revoked')) AS far
FROM task_status s WHERE s.task_id = :task_id;

-- name: stated_needs
-- All different ones of waiting tasks, one index probe each, and those of personas.
WITH RECURSIVE different (needs) AS (
    SELECT MIN(s.needs) FROM task_status s WHERE s.status = 'pending' AND s.needs IS NOT NULL
    UNION ALL
    SELECT (SELECT MIN(s.needs) FROM task_status s
            WHERE s.status = 'pending' AND s.needs IS NOT NULL AND s.needs > d.needs)
    FROM different d WHERE d.needs IS NOT NULL
)
SELECT needs FROM different WHERE needs IS NOT NULL
UNION SELECT needs FROM personas WHERE needs IS NOT NULL;

-- name: long_waits
SELECT w.task_id, COALESCE(s.needs, p.needs, '') AS needs FROM resource_waits w
JOIN task_status s ON s.task_id = w.task_id
LEFT JOIN personas p ON p.id = s.persona_id
WHERE s.status = 'pending' AND s.unmet = 0 AND s.not_before IS NULL AND w.since <= :since AND w.asked_at >= :asked
  AND (w.machine = :machine OR (CAST(:machine AS TEXT) IS NULL AND w.machine NOT LIKE 'elsewhere:%'))
ORDER BY w.since, w.task_id;

-- name: note_wait
INSERT INTO resource_waits (task_id, since, asked_at, machine) VALUES (:task_id, :now, :now, :machine)
ON CONFLICT (task_id) DO UPDATE SET asked_at = excluded.asked_at, machine = excluded.machine WHERE resource_waits.asked_at < :before;

-- name: forget_wait
DELETE FROM resource_waits WHERE task_id = :task_id OR NOT EXISTS (
    SELECT 1 FROM task_status s WHERE s.task_id = resource_waits.task_id AND s.status = 'pending');

-- name: is_below
WITH RECURSIVE up (id, parent_id) AS (
    SELECT o.id, o.parent_id FROM tasks o WHERE o.id = :task_id
    UNION SELECT o.id, o.parent_id FROM tasks o JOIN up u ON o.id = u.parent_id)
SELECT 1 AS found FROM up WHERE id = :above;

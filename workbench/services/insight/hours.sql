-- name: work
SELECT a.task_id, a.attempt, a.claimed_at, a.ended_at, a.outcome
FROM task_attempts a JOIN tasks t ON t.id = a.task_id WHERE t.plan = :plan ORDER BY a.claimed_at;

-- name: open
SELECT COUNT(*) AS number FROM task_status s JOIN tasks t ON t.id = s.task_id
WHERE t.plan = :plan AND s.status IN ('pending', 'claimed', 'in_progress');

-- name: bounds
-- The first and the last event of a plan's tasks.
SELECT MIN(e.id) AS first, MAX(e.id) AS last, MAX(e.at) AS ended
FROM events e JOIN tasks t ON e.subject = 'task:' || CAST(t.id AS TEXT) WHERE t.plan = :plan;

-- name: merged
-- When worktrees of a plan were merged last, soon after its last task ended.
SELECT MAX(at) AS at FROM events
WHERE id > :last AND at <= :until AND kind = 'worktree.integrated' AND subject IN (
    SELECT 'worktree:' || s.worktree FROM task_status s JOIN tasks t ON t.id = s.task_id WHERE t.plan = :plan);

-- name: events
SELECT at, kind, subject, data FROM events
WHERE id >= :first AND at >= :since AND at <= :until
  AND (kind LIKE 'task.%' OR kind LIKE 'hold.%' OR kind LIKE 'budget.%' OR kind LIKE 'agent.%'
    OR kind IN ('worktree.integrated', 'worktree.refused', 'server.returned', 'store.was_full'))
ORDER BY id LIMIT :most;

-- name: tasks
SELECT id, worktree FROM tasks t JOIN task_status s ON s.task_id = t.id WHERE t.plan = :plan;

-- name: agents
SELECT id, assigned_agent_id AS name FROM agents;

-- name: processes
SELECT agent_id, spawned_at, ended_at FROM processes WHERE ended_at IS NULL OR ended_at >= :since;

-- name: questions
SELECT id, subject, created_at, decided_at FROM approvals
WHERE created_at <= :until AND (decided_at IS NULL OR decided_at >= :since) ORDER BY id;

-- name: noted
SELECT data FROM events WHERE subject = 'store:project' ORDER BY id DESC LIMIT 1;

-- part: family
-- The names, former ones too, of an agent, of those that it was spawned by, and of all that these spawned.
above (id, parent) AS (
    SELECT id, parent_agent_id FROM agents WHERE id = :agent
    UNION
    SELECT a.id, a.parent_agent_id FROM agents a JOIN above u ON a.id = u.parent
), crew (id) AS (
    SELECT id FROM above
    UNION
    SELECT a.id FROM agents a JOIN crew c ON a.parent_agent_id = c.id
), names (name) AS (
    SELECT g.assigned_agent_id FROM agents g JOIN crew c ON g.id = c.id WHERE g.assigned_agent_id IS NOT NULL
    UNION
    SELECT f.agent_id FROM former_ids f JOIN crew c ON f.id = c.id
)

-- name: created_since
-- Tasks that these created since, and since a person approved any of theirs.
WITH RECURSIVE {{family}}, place (since) AS (
    SELECT COALESCE(MAX(a.decided_at), 0) FROM approvals a JOIN names n ON a.requester = n.name
    WHERE a.kind = 'plan' AND a.status = 'approved'
)
SELECT COUNT(*) AS n FROM names n JOIN tasks t ON t.created_by = n.name JOIN task_status s ON s.task_id = t.id
WHERE t.created_at > CAST(:since AS {{big}}) AND t.created_at > (SELECT since FROM place) AND s.status <> 'cancelled';

-- name: approval_of_parent
SELECT s.approval_id FROM tasks t JOIN task_status s ON s.task_id = t.parent_id
JOIN approvals a ON a.id = s.approval_id AND a.status = 'pending'
WHERE t.id = :task_id;

-- name: count_open
SELECT COUNT(*) AS n FROM approvals WHERE kind = 'plan' AND status = 'pending' AND requester = :requester;

-- name: wait
UPDATE task_status SET approval_id = CAST(:approval AS {{big}}), unmet = unmet + 1 WHERE task_id = :task_id;

-- name: approve
UPDATE task_status SET approval_id = NULL, unmet = unmet - 1 WHERE approval_id = :approval AND status = 'pending'
RETURNING task_id;

-- name: waiting
SELECT t.id, t.name, t.title, t.parent_id AS parent_task_id, t.run, t.check_stated, t.on_failure, t.due, t.session_id,
    s.persona_id, s.worktree, s.needs, b.tokens AS budget_tokens, b.usd AS budget_usd, b.attempts AS budget_attempts,
    b.seconds AS budget_seconds
FROM task_status s JOIN tasks t ON t.id = s.task_id
LEFT JOIN budgets b ON b.scope = 'task:' || CAST(t.id AS TEXT)
WHERE s.approval_id = :approval AND s.status = 'pending' ORDER BY t.id;

-- name: edges
SELECT d.task_id, d.depends_on FROM task_status s JOIN task_dependencies d ON d.task_id = s.task_id
WHERE s.approval_id = :approval AND s.status = 'pending' ORDER BY d.task_id, d.depends_on;

-- name: budget_of_plan
SELECT tokens AS budget_tokens, usd AS budget_usd, attempts AS budget_attempts, seconds AS budget_seconds
FROM budgets WHERE scope = 'plan:' || :plan;

-- name: detach
UPDATE tasks SET plan = NULL WHERE id = :task_id;

-- name: forget_plan
DELETE FROM plans WHERE name = :plan AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.plan = :plan);

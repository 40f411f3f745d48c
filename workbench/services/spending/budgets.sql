-- part: below
WITH RECURSIVE below (id) AS (
    SELECT CAST(:ref AS {{big}}) UNION SELECT t.id FROM tasks t JOIN below b ON t.parent_id = b.id)
SELECT id FROM below

-- part: sums
SELECT CAST(COALESCE(SUM(COALESCE(x.input_tokens, 0) + COALESCE(x.cached_tokens, 0) + COALESCE(x.cache_write_tokens, 0)
        + COALESCE(x.cache_write_hour_tokens, 0) + COALESCE(x.output_tokens, 0)), 0) AS {{big}}) AS tokens,
    COALESCE(SUM(x.cost_usd), 0) AS usd,
    COUNT(CASE WHEN x.cost_usd IS NULL AND x.input_tokens IS NOT NULL THEN 1 END) AS unpriced

-- part: open
SELECT s.task_id, s.status, s.assigned_agent_id FROM task_status s JOIN tasks t ON t.id = s.task_id
WHERE s.status IN ('pending', 'claimed', 'in_progress')

-- name: of_task
-- The budgets that a task is in: of the project, of its plan, its own, and of the tasks above it.
SELECT b.* FROM budgets b WHERE b.scope = 'project'
    OR b.scope = 'plan:' || (SELECT plan FROM tasks WHERE id = CAST(:task_id AS {{big}}))
    OR b.scope IN (
        WITH RECURSIVE up (id, parent_id) AS (
            SELECT id, parent_id FROM tasks WHERE id = CAST(:task_id AS {{big}})
            UNION SELECT t.id, t.parent_id FROM tasks t JOIN up u ON t.id = u.parent_id)
        SELECT 'task:' || CAST(id AS TEXT) FROM up)
ORDER BY b.scope;

-- name: get
SELECT * FROM budgets WHERE scope = :scope;

-- name: list
SELECT * FROM budgets ORDER BY scope;

-- name: used_up
SELECT * FROM budgets WHERE used_up <> '' AND stopped = 0;

-- name: spent_by_project
{{sums}}, (SELECT COUNT(*) FROM task_attempts) AS attempts FROM spending x;

-- name: spent_by_plan
{{sums}}, (SELECT COUNT(*) FROM task_attempts a JOIN tasks t ON t.id = a.task_id WHERE t.plan = :ref) AS attempts
FROM spending x WHERE x.plan = :ref;

-- name: spent_by_task
{{sums}}, (SELECT COUNT(*) FROM task_attempts WHERE task_id IN ({{below}})) AS attempts
FROM spending x WHERE x.task_id IN ({{below}});

-- name: open_in_project
{{open}} ORDER BY s.task_id;

-- name: open_in_plan
{{open}} AND t.plan = :ref ORDER BY s.task_id;

-- name: open_in_task
{{open}} AND t.id IN ({{below}}) ORDER BY s.task_id;

-- name: put
INSERT INTO budgets (scope, tokens, usd, attempts, stated, stated_by, set_at)
VALUES (:scope, CAST(:tokens AS {{big}}), CAST(:usd AS {{real}}), CAST(:attempts AS {{big}}), :stated, :by, :now)
ON CONFLICT (scope) DO UPDATE SET tokens = excluded.tokens, usd = excluded.usd, attempts = excluded.attempts,
    stated = excluded.stated, stated_by = excluded.stated_by, set_at = excluded.set_at, stopped = 0;

-- name: raise_limits
UPDATE budgets SET tokens = CAST(:tokens AS {{big}}), usd = CAST(:usd AS {{real}}), attempts = CAST(:attempts AS {{big}}),
    stopped = 0
WHERE scope = :scope;

-- name: stop
UPDATE budgets SET stopped = 1 WHERE scope = :scope;

-- name: mark
UPDATE budgets SET nearly = :nearly, used_up = :used_up WHERE scope = :scope;

-- name: remove
DELETE FROM budgets WHERE scope = :scope;

-- name: has_plan
SELECT name FROM plans WHERE name = :ref;

-- name: has_task
SELECT id FROM tasks WHERE id = :ref;

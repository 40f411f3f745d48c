-- part: number
CAST(:number AS {{big}})

-- part: below
WITH RECURSIVE below (id) AS (
    SELECT {{number}} UNION SELECT o.id FROM tasks o JOIN below b ON o.parent_id = b.id)
SELECT b.id FROM below b

-- part: budget
-- Budgets with what is spent of them; those without a limit only say what is declared.
SELECT b.*, COALESCE(s.tokens, 0) AS spent_tokens, COALESCE(s.usd, 0) AS spent_usd,
    COALESCE(s.attempts, 0) AS spent_attempts, COALESCE(s.unpriced, 0) AS unpriced, COALESCE(s.busy_us, 0) AS busy_us,
    COALESCE(s.under_way, 0) AS under_way, COALESCE(s.since, 0) AS since, n.name AS session_name
FROM budgets b LEFT JOIN spent s ON s.scope = b.scope
    LEFT JOIN sessions n ON b.scope LIKE 'session:%' AND n.id = SUBSTR(b.scope, 9)
WHERE (b.tokens IS NOT NULL OR b.usd IS NOT NULL OR b.attempts IS NOT NULL OR b.seconds IS NOT NULL)

-- name: of_scopes
{{budget}} AND b.scope IN (SELECT o.value FROM {{rows_of scopes}} AS o) ORDER BY b.scope;

-- name: get
{{budget}} AND b.scope = :scope;

-- name: list
{{budget}} ORDER BY b.scope;

-- name: used_up
{{budget}} AND b.used_up <> '' AND b.stopped = 0 ORDER BY b.scope;

-- name: running
-- Of the time that is worked, where somebody works.
{{budget}} AND b.seconds IS NOT NULL AND s.under_way > 0 ORDER BY b.scope;

-- name: said
SELECT stated, stated_by, declared FROM budgets WHERE scope = :scope;

-- name: any_used_up
SELECT scope FROM budgets WHERE used_up <> '' LIMIT 1;

-- name: waiting
-- The tasks of a scope that have not begun. A session, or a run in it, has its own; others may be done elsewhere.
SELECT s.task_id FROM task_status s JOIN tasks t ON t.id = s.task_id
WHERE s.status = 'pending' AND CASE :kind WHEN 'project' THEN 1 = 1 WHEN 'plan' THEN t.plan = :ref
    WHEN 'session' THEN t.session_id = :ref WHEN 'persona' THEN s.persona_id = :ref
    WHEN 'run' THEN t.session_id = (SELECT r.session_id FROM runs r WHERE r.id = {{number}} AND r.ended_at IS NULL)
    ELSE t.id IN ({{below}}) END
ORDER BY s.task_id;

-- name: under_way
SELECT a.task_id, a.agent_id FROM task_attempts a
JOIN task_status s ON s.task_id = a.task_id AND s.attempt = a.attempt
WHERE a.ended_at IS NULL AND s.status IN ('claimed', 'in_progress') ORDER BY a.task_id;

-- name: put
INSERT INTO budgets (scope, tokens, usd, attempts, seconds, stated, stated_by, declared, set_at)
VALUES (:scope, CAST(:tokens AS {{big}}), CAST(:usd AS {{real}}), CAST(:attempts AS {{big}}), CAST(:seconds AS {{real}}),
    :stated, :by, CAST(:declared AS TEXT), :now)
ON CONFLICT (scope) DO UPDATE SET tokens = excluded.tokens, usd = excluded.usd, attempts = excluded.attempts,
    seconds = excluded.seconds, stated = excluded.stated, stated_by = excluded.stated_by, declared = excluded.declared,
    set_at = excluded.set_at, stopped = 0;

-- name: raise_limits
UPDATE budgets SET tokens = CAST(:tokens AS {{big}}), usd = CAST(:usd AS {{real}}), attempts = CAST(:attempts AS {{big}}),
    seconds = CAST(:seconds AS {{real}}), stopped = 0
WHERE scope = :scope;

-- name: stop
UPDATE budgets SET stopped = 1 WHERE scope = :scope;

-- name: mark
UPDATE budgets SET nearly = :nearly, used_up = :used_up WHERE scope = :scope;

-- name: undeclare
UPDATE budgets SET declared = NULL WHERE scope = :scope;

-- name: remove
DELETE FROM budgets WHERE scope = :scope;

-- name: plan
SELECT name FROM plans WHERE name = :ref;

-- name: task
SELECT id FROM tasks WHERE id = {{number}};

-- name: run
SELECT id FROM runs WHERE id = {{number}};

-- name: persona
SELECT id FROM personas WHERE id = LOWER(:ref);

-- name: session
SELECT id, name FROM sessions WHERE (id = :ref OR name = :ref) AND deleted_at IS NULL;

-- name: personas
-- What personas declare anew.
SELECT p.id, p.budget FROM personas p LEFT JOIN budgets b ON b.scope = 'persona:' || p.id
WHERE COALESCE(p.budget, '') <> COALESCE(b.declared, '');

-- name: unpriced_models
-- The models of past requests in a scope whose cost is not known, the last ones first.
SELECT x.model FROM spending x
WHERE x.cost_usd IS NULL AND x.input_tokens IS NOT NULL AND x.model IS NOT NULL AND CASE :kind
    WHEN 'project' THEN 1 = 1 WHEN 'plan' THEN x.plan = :ref WHEN 'session' THEN x.session_id = :ref
    WHEN 'persona' THEN x.persona_id = :ref WHEN 'run' THEN x.run_id = {{number}}
    ELSE x.task_id IN ({{below}}) END
GROUP BY x.model ORDER BY MAX(x.id) DESC LIMIT 5;

-- What is spent, summed up as it is booked, for all that may have a budget. scope: project, plan:NAME, session:ID,
-- persona:ID, run:ID, or task:ID with its subtasks. tokens, usd, unpriced: of requests to models; attempts: that began;
-- under_way of them have not ended. busy_us: how long at least one was under way, until the first of those under way now
-- began, at since.

CREATE TABLE spent (
    scope TEXT PRIMARY KEY,
    tokens {{big}} NOT NULL DEFAULT 0,
    usd {{real}} NOT NULL DEFAULT 0,
    unpriced {{big}} NOT NULL DEFAULT 0,
    attempts {{big}} NOT NULL DEFAULT 0,
    under_way {{big}} NOT NULL DEFAULT 0,
    since {{big}} NOT NULL DEFAULT 0,
    busy_us {{big}} NOT NULL DEFAULT 0
) {{strict}};

-- What a request, and an attempt, was for when it was booked, and when it began.
ALTER TABLE spending ADD COLUMN persona_id TEXT;
ALTER TABLE task_attempts ADD COLUMN plan TEXT;
ALTER TABLE task_attempts ADD COLUMN session_id TEXT;
ALTER TABLE task_attempts ADD COLUMN persona_id TEXT;
ALTER TABLE task_attempts ADD COLUMN run_id {{big}};
UPDATE spending SET persona_id = (SELECT persona_id FROM agents a WHERE a.id = spending.agent_id);
UPDATE task_attempts SET plan = (SELECT plan FROM tasks t WHERE t.id = task_attempts.task_id),
    session_id = COALESCE((SELECT session_id FROM tasks t WHERE t.id = task_attempts.task_id),
        (SELECT session_id FROM agents a WHERE a.id = task_attempts.agent_id)),
    persona_id = (SELECT persona_id FROM agents a WHERE a.id = task_attempts.agent_id);

INSERT INTO spent (scope, tokens, usd, unpriced, attempts, under_way, since, busy_us)
WITH RECURSIVE up (id, above) AS (
    SELECT id, id FROM tasks
    UNION SELECT u.id, t.parent_id FROM up u JOIN tasks t ON t.id = u.above WHERE t.parent_id IS NOT NULL),
around (id, above) AS (
    SELECT id, id FROM runs
    UNION SELECT a.id, r.parent_id FROM around a JOIN runs r ON r.id = a.above WHERE r.parent_id IS NOT NULL),
requests AS (
    SELECT id, task_id, plan, session_id, persona_id, run_id, cost_usd,
        COALESCE(input_tokens, 0) + COALESCE(cached_tokens, 0) + COALESCE(cache_write_tokens, 0)
            + COALESCE(cache_write_hour_tokens, 0) + COALESCE(output_tokens, 0) AS tokens,
        CASE WHEN cost_usd IS NULL AND input_tokens IS NOT NULL THEN 1 ELSE 0 END AS unpriced
    FROM spending),
booked AS (
    SELECT 'project' AS scope, r.* FROM requests r
    UNION ALL SELECT 'plan:' || r.plan, r.* FROM requests r WHERE r.plan IS NOT NULL
    UNION ALL SELECT 'session:' || r.session_id, r.* FROM requests r WHERE r.session_id IS NOT NULL
    UNION ALL SELECT 'persona:' || r.persona_id, r.* FROM requests r WHERE r.persona_id IS NOT NULL
    UNION ALL SELECT 'run:' || CAST(a.above AS TEXT), r.* FROM requests r JOIN around a ON a.id = r.run_id
    UNION ALL SELECT 'task:' || CAST(u.above AS TEXT), r.* FROM requests r JOIN up u ON u.id = r.task_id),
tries AS (
    SELECT task_id, plan, session_id, persona_id, claimed_at,
        CASE WHEN ended_at IS NULL THEN 1 ELSE 0 END AS is_open, COALESCE(ended_at, 9223372036854775807) AS ended_at
    FROM task_attempts),
tried AS (
    SELECT 'project' AS scope, x.* FROM tries x
    UNION ALL SELECT 'plan:' || x.plan, x.* FROM tries x WHERE x.plan IS NOT NULL
    UNION ALL SELECT 'session:' || x.session_id, x.* FROM tries x WHERE x.session_id IS NOT NULL
    UNION ALL SELECT 'persona:' || x.persona_id, x.* FROM tries x WHERE x.persona_id IS NOT NULL
    UNION ALL SELECT 'task:' || CAST(u.above AS TEXT), x.* FROM tries x JOIN up u ON u.id = x.task_id),
begun AS (
    SELECT scope, claimed_at, ended_at, is_open, CASE WHEN claimed_at <= MAX(ended_at) OVER (
        PARTITION BY scope ORDER BY claimed_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) THEN 0 ELSE 1 END AS is_first
    FROM tried),
stretches AS (
    SELECT scope, claimed_at, ended_at, is_open, SUM(is_first) OVER (PARTITION BY scope ORDER BY claimed_at
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS stretch FROM begun),
worked AS (
    SELECT scope, COUNT(*) AS attempts, SUM(is_open) AS under_way, MIN(claimed_at) AS since, MAX(ended_at) AS until
    FROM stretches GROUP BY scope, stretch),
sums (scope, tokens, usd, unpriced, attempts, under_way, since, busy_us) AS (
    SELECT scope, SUM(tokens), SUM(cost_usd), SUM(unpriced), 0, 0, 0, 0 FROM booked GROUP BY scope
    UNION ALL
    SELECT scope, 0, 0, 0, SUM(attempts), SUM(under_way), MAX(CASE WHEN under_way > 0 THEN since ELSE 0 END),
        SUM(CASE WHEN under_way > 0 THEN 0 ELSE until - since END) FROM worked GROUP BY scope)
SELECT scope, CAST(SUM(tokens) AS {{big}}), COALESCE(SUM(usd), 0), CAST(SUM(unpriced) AS {{big}}),
    CAST(SUM(attempts) AS {{big}}), CAST(SUM(under_way) AS {{big}}), CAST(SUM(since) AS {{big}}),
    CAST(SUM(busy_us) AS {{big}})
FROM sums GROUP BY scope;

-- Budgets of sessions, personas and runs, and of the time that is worked. declared: what the settings, the plan or the
-- persona say, as JSON, which a person may have changed since; without a limit, there is only that.

CREATE TABLE limits (
    scope TEXT PRIMARY KEY,
    tokens {{big}},
    usd {{real}},
    attempts {{big}},
    seconds {{real}},
    stated TEXT NOT NULL,
    stated_by TEXT NOT NULL CHECK (stated_by IN ('settings', 'plan', 'persona', 'person')),
    declared TEXT,
    nearly TEXT NOT NULL DEFAULT '',
    used_up TEXT NOT NULL DEFAULT '',
    stopped {{big}} NOT NULL DEFAULT 0,
    set_at {{big}} NOT NULL
) {{strict}};
INSERT INTO limits (scope, tokens, usd, attempts, stated, stated_by, declared, nearly, used_up, stopped, set_at)
SELECT scope, tokens, usd, attempts, stated, stated_by, CASE WHEN stated_by <> 'person' THEN stated END, nearly, used_up,
    stopped, set_at FROM budgets;
DROP TABLE budgets;
ALTER TABLE limits RENAME TO budgets;
CREATE INDEX budgets_used_up ON budgets (scope) WHERE used_up <> '';
ALTER TABLE personas ADD COLUMN budget TEXT;
DROP INDEX spending_by_plan;

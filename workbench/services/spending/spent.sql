-- part: session
COALESCE((SELECT session_id FROM tasks WHERE id = :task_id), (SELECT session_id FROM agents WHERE id = :agent))

-- part: scopes
-- Those that count what is made `here`: of its task those above it, too, and of its run those around it.
up (id, parent_id) AS (
    SELECT t.id, t.parent_id FROM here h JOIN tasks t ON t.id = h.task_id
    UNION SELECT t.id, t.parent_id FROM tasks t JOIN up u ON t.id = u.parent_id),
around (id, parent_id) AS (
    SELECT r.id, r.parent_id FROM here h JOIN runs r ON r.id = h.run_id
    UNION SELECT r.id, r.parent_id FROM runs r JOIN around a ON r.id = a.parent_id),
scopes (scope) AS (
    SELECT 'project' FROM here UNION ALL SELECT 'plan:' || plan FROM here WHERE plan IS NOT NULL
    UNION ALL SELECT 'session:' || session_id FROM here WHERE session_id IS NOT NULL
    UNION ALL SELECT 'persona:' || persona_id FROM here WHERE persona_id IS NOT NULL
    UNION ALL SELECT 'task:' || CAST(id AS TEXT) FROM up UNION ALL SELECT 'run:' || CAST(id AS TEXT) FROM around)

-- part: attempt
WITH RECURSIVE here AS (
    SELECT task_id, plan, session_id, persona_id, run_id FROM task_attempts WHERE task_id = :task_id AND ended_at IS NULL),
{{scopes}}
SELECT s.scope FROM scopes s

-- name: place
-- What a request or an attempt of an agent is for. It is made in the run that is going on in its session then, the
-- innermost one; in none if there are several beside each other.
WITH RECURSIVE here AS (
    SELECT CAST(:task_id AS {{big}}) AS task_id, (SELECT plan FROM tasks WHERE id = :task_id) AS plan,
        {{session}} AS session_id, (SELECT persona_id FROM agents WHERE id = :agent) AS persona_id,
        COALESCE(CAST(:run_id AS {{big}}), (SELECT CASE WHEN COUNT(*) = 1 THEN MAX(r.id) END FROM runs r
            WHERE r.session_id = {{session}} AND r.started_at <= :at AND (r.ended_at IS NULL OR r.ended_at >= :at)
                AND NOT EXISTS (SELECT 1 FROM runs i WHERE i.parent_id = r.id AND i.started_at <= :at
                    AND (i.ended_at IS NULL OR i.ended_at >= :at)))) AS run_id),
{{scopes}}
SELECT s.scope, h.plan, h.session_id, h.persona_id, h.run_id FROM scopes s CROSS JOIN here h;

-- name: of_attempt
{{attempt}};

-- name: above
WITH RECURSIVE up (id, parent_id) AS (
    SELECT id, parent_id FROM tasks WHERE id = CAST(:task_id AS {{big}})
    UNION SELECT t.id, t.parent_id FROM tasks t JOIN up u ON t.id = u.parent_id)
SELECT id FROM up;

-- name: book
-- Sums do not rise for ever: what one request adds is at most 5e12.
INSERT INTO spent (scope, tokens, usd, unpriced)
SELECT s.value, CAST(:tokens AS {{big}}), CAST(:usd AS {{real}}), CAST(:unpriced AS {{big}})
FROM {{rows_of scopes}} AS s WHERE TRUE
ON CONFLICT (scope) DO UPDATE SET usd = spent.usd + excluded.usd, unpriced = spent.unpriced + excluded.unpriced,
    tokens = spent.tokens + CASE WHEN spent.tokens < 1000000000000000000 THEN excluded.tokens ELSE 0 END;

-- name: begin
INSERT INTO spent (scope, attempts, under_way, since)
SELECT s.value, 1, 1, CAST(:now AS {{big}}) FROM {{rows_of scopes}} AS s WHERE TRUE
ON CONFLICT (scope) DO UPDATE SET attempts = spent.attempts + 1, under_way = spent.under_way + 1,
    since = CASE WHEN spent.under_way = 0 THEN excluded.since ELSE spent.since END;

-- name: end
UPDATE spent SET under_way = under_way - 1,
    busy_us = busy_us + CASE WHEN under_way = 1 AND :now > since THEN :now - since ELSE 0 END
WHERE scope IN ({{attempt}});

-- part: below
WITH RECURSIVE below (id) AS (
    SELECT CAST(:id AS {{big}}) UNION SELECT t.id FROM tasks t JOIN below b ON t.parent_id = b.id)

-- name: requests_below
{{below}}
SELECT CAST(COALESCE(SUM(COALESCE(x.input_tokens, 0) + COALESCE(x.cached_tokens, 0) + COALESCE(x.cache_write_tokens, 0)
        + COALESCE(x.cache_write_hour_tokens, 0) + COALESCE(x.output_tokens, 0)), 0) AS {{big}}) AS tokens,
    COALESCE(SUM(x.cost_usd), 0) AS usd,
    COUNT(CASE WHEN x.cost_usd IS NULL AND x.input_tokens IS NOT NULL THEN 1 END) AS unpriced
FROM spending x JOIN below b ON b.id = x.task_id;

-- name: attempts_below
{{below}}
SELECT a.claimed_at, a.ended_at FROM task_attempts a JOIN below b ON b.id = a.task_id ORDER BY a.claimed_at;

-- name: put
INSERT INTO spent (scope, tokens, usd, unpriced, attempts, under_way, since, busy_us)
VALUES (:scope, :tokens, :usd, :unpriced, :attempts, :under_way, :since, :busy_us)
ON CONFLICT (scope) DO UPDATE SET tokens = excluded.tokens, usd = excluded.usd, unpriced = excluded.unpriced,
    attempts = excluded.attempts, under_way = excluded.under_way, since = excluded.since, busy_us = excluded.busy_us;

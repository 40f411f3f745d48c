CREATE VIEW budgets AS
WITH RECURSIVE below (scope, id) AS (
    SELECT scope, CAST(substr(scope, 6) AS BIGINT) FROM raw_budgets WHERE scope LIKE 'task:%'
    UNION SELECT b.scope, t.id FROM below b JOIN raw_tasks t ON t.parent_id = b.id
), within (scope, id) AS (
    SELECT scope, CAST(substr(scope, 5) AS BIGINT) FROM raw_budgets WHERE scope LIKE 'run:%'
    UNION SELECT w.scope, r.id FROM within w JOIN raw_runs r ON r.parent_id = w.id
), named (scope, of_plan, of_session, of_persona) AS (
    SELECT scope, CASE WHEN scope LIKE 'plan:%' THEN substr(scope, 6) END,
        CASE WHEN scope LIKE 'session:%' THEN substr(scope, 9) END,
        CASE WHEN scope LIKE 'persona:%' THEN substr(scope, 9) END
    FROM raw_budgets
), requests (scope, id) AS (
    SELECT n.scope, x.id FROM named n JOIN raw_spending x ON n.scope = 'project'
    UNION ALL SELECT n.scope, x.id FROM named n JOIN raw_spending x ON n.of_plan = x.plan
    UNION ALL SELECT n.scope, x.id FROM named n JOIN raw_spending x ON n.of_session = x.session_id
    UNION ALL SELECT n.scope, x.id FROM named n JOIN raw_spending x ON n.of_persona = x.persona
    UNION ALL SELECT w.scope, x.id FROM within w JOIN raw_spending x ON w.id = x.run_id
    UNION ALL SELECT b.scope, x.id FROM below b JOIN raw_spending x ON b.id = x.task_id
), used AS (
    SELECT r.scope, sum(coalesce(x.input_tokens, 0) + coalesce(x.cached_tokens, 0) + coalesce(x.cache_write_tokens, 0)
            + coalesce(x.cache_write_hour_tokens, 0) + coalesce(x.output_tokens, 0)) AS tokens,
        round(coalesce(sum(x.cost_usd), 0), 9) AS usd,
        count(*) FILTER (x.cost_usd IS NULL AND x.input_tokens IS NOT NULL) AS unpriced
    FROM requests r JOIN raw_spending x ON x.id = r.id GROUP BY r.scope
), tries AS (
    SELECT *, coalesce(ended_us, (SELECT max(at_us) FROM raw_events)) AS until_us FROM raw_attempts
), tried (scope, since_us, until_us) AS (
    SELECT n.scope, x.claimed_us, x.until_us FROM named n JOIN tries x ON n.scope = 'project'
    UNION ALL SELECT n.scope, x.claimed_us, x.until_us FROM named n JOIN tries x ON n.of_plan = x.plan
    UNION ALL SELECT n.scope, x.claimed_us, x.until_us FROM named n JOIN tries x ON n.of_session = x.session_id
    UNION ALL SELECT n.scope, x.claimed_us, x.until_us FROM named n JOIN tries x ON n.of_persona = x.persona
    UNION ALL SELECT w.scope, x.claimed_us, x.until_us FROM within w JOIN tries x ON w.id = x.run_id
    UNION ALL SELECT b.scope, x.claimed_us, x.until_us FROM below b JOIN tries x ON b.id = x.task_id
), after_others AS (
    SELECT *, max(until_us) OVER (PARTITION BY scope ORDER BY since_us, until_us
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_us FROM tried
), worked AS (
    SELECT scope, count(*) AS attempts,
        sum(greatest(until_us - greatest(since_us, coalesce(before_us, since_us)), 0)) / 1e6 AS seconds
    FROM after_others GROUP BY scope
), amounts (scope, amount, allowed, spent) AS (
    SELECT b.scope, 'tokens', b.tokens, coalesce(u.tokens, 0) FROM raw_budgets b LEFT JOIN used u ON u.scope = b.scope
    UNION ALL SELECT b.scope, 'usd', b.usd, coalesce(u.usd, 0) FROM raw_budgets b LEFT JOIN used u ON u.scope = b.scope
    UNION ALL
    SELECT b.scope, 'attempts', b.attempts, coalesce(w.attempts, 0) FROM raw_budgets b LEFT JOIN worked w ON w.scope = b.scope
    UNION ALL
    SELECT b.scope, 'seconds', b.seconds, coalesce(w.seconds, 0) FROM raw_budgets b LEFT JOIN worked w ON w.scope = b.scope
)
SELECT a.scope, a.amount, CAST(a.allowed AS DOUBLE) AS allowed, CAST(a.spent AS DOUBLE) AS spent,
    CASE WHEN a.allowed > 0 THEN a.spent / a.allowed END AS share,
    CASE WHEN b.stopped = 1 THEN 'stopped' WHEN a.spent >= a.allowed THEN 'used up'
        WHEN a.spent >= 0.8 * a.allowed THEN 'nearly' ELSE 'open' END AS state,
    coalesce(u.unpriced, 0) AS unpriced, b.stated_by, make_timestamptz(b.set_us) AS set_at
FROM amounts a JOIN raw_budgets b ON b.scope = a.scope LEFT JOIN used u ON u.scope = a.scope
WHERE a.allowed IS NOT NULL ORDER BY a.scope, a.amount;

COMMENT ON VIEW budgets IS 'What may be spent, and what is spent of it, by the ledger: one row for each limit of a budget.';
COMMENT ON COLUMN budgets.scope IS 'What has the budget: project, plan:NAME, session:ID, persona:ID, run:ID, or task:ID with its subtasks.';
COMMENT ON COLUMN budgets.amount IS 'What is limited: tokens, usd, attempts, or seconds in which at least one attempt is under way.';
COMMENT ON COLUMN budgets.allowed IS 'The limit, as it was set or raised last.';
COMMENT ON COLUMN budgets.spent IS 'What is spent of it; time as of the last event.';
COMMENT ON COLUMN budgets.share IS 'Its share of the limit; null if that is 0.';
COMMENT ON COLUMN budgets.state IS 'open, nearly (80 % is spent), used up, or stopped by the person.';
COMMENT ON COLUMN budgets.unpriced IS 'Requests in it without a known cost, which the US dollars do not contain.';
COMMENT ON COLUMN budgets.stated_by IS 'Who has set it: settings, plan, persona, or the person.';
COMMENT ON COLUMN budgets.set_at IS 'When it was set.';

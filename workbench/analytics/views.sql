-- The tables of `workbench sql`. Times have a time zone, and DuckDB shows them in that of the computer; waits and durations
-- are in seconds. No name is a word that DuckDB reserves: a query need not quote any.

CREATE VIEW events AS
SELECT id, make_timestamptz(at_us) AS occurred_at, kind, actor, subject, session, CAST(data AS JSON) AS data
FROM raw_events;

CREATE VIEW agents AS
SELECT agent, name, status, persona, role, tool, worktree, parent, make_timestamptz(registered_us) AS registered_at
FROM raw_agents;

CREATE VIEW attempts AS
SELECT task_id, attempt, agent, outcome, error,
    make_timestamptz(claimed_us) AS claimed_at,
    make_timestamptz(started_us) AS started_at,
    make_timestamptz(ended_us) AS ended_at,
    (ended_us - claimed_us) / 1e6 AS seconds
FROM raw_attempts;

CREATE VIEW dependencies AS SELECT task_id, depends_on FROM raw_dependencies;

-- A task was ready when it had been created and its dependencies were completed. A dependency that was completed after
-- the first claim (such as a part that was added later) did not delay that claim.
CREATE VIEW tasks AS
WITH first_claim AS (
    SELECT task_id, min(claimed_us) AS claimed_us FROM raw_attempts GROUP BY task_id
), ready AS (
    SELECT t.id, greatest(t.created_us, coalesce(max(d.completed_us), 0)) AS ready_us
    FROM raw_tasks t
    LEFT JOIN first_claim c ON c.task_id = t.id
    LEFT JOIN raw_dependencies e ON e.task_id = t.id
    LEFT JOIN raw_tasks d ON d.id = e.depends_on AND (c.claimed_us IS NULL OR d.completed_us <= c.claimed_us)
    GROUP BY t.id, t.created_us
)
SELECT t.id, t.title, t.plan, t.name, t.persona, t.worktree, t.parent_id, t.priority, t.status, t.agent,
    t.attempt AS attempts, t.progress,
    make_timestamptz(t.created_us) AS created_at,
    make_timestamptz(r.ready_us) AS ready_at,
    make_timestamptz(c.claimed_us) AS claimed_at,
    make_timestamptz(t.completed_us) AS completed_at,
    (c.claimed_us - r.ready_us) / 1e6 AS wait_seconds,
    (t.completed_us - c.claimed_us) / 1e6 AS duration_seconds,
    CAST(t.result AS JSON) AS result,
    CAST(t.artifacts AS JSON) AS artifacts,
    t.error
FROM raw_tasks t
JOIN ready r ON r.id = t.id
LEFT JOIN first_claim c ON c.task_id = t.id;

CREATE VIEW approvals AS
SELECT id, kind, status, requester, subject, make_timestamptz(created_us) AS created_at,
    make_timestamptz(decided_us) AS decided_at, decided_by, reason,
    (decided_us - created_us) / 1e6 AS wait_seconds
FROM raw_approvals;

CREATE VIEW worktrees AS
SELECT name, branch, target, status, commit_id, created_by, make_timestamptz(created_us) AS created_at,
    make_timestamptz(closed_us) AS closed_at
FROM raw_worktrees;

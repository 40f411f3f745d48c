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

-- A call waits while the operator is asked, and takes from its start to its end. Arguments and results of more than 20,000
-- characters are left out; get_tool_call returns them. commit_id: what the worktree of the caller's task was merged as.
-- origin_call: the id of the call at the node that sent it, which is `id` of its own record there.
CREATE VIEW tool_calls AS
SELECT id, tool_name, source, kind, server, version, caller, agent, task_id, attempt, worktree, commit_id,
    conversation_id, definition_id, definition_hash, origin_node, origin_call, origin_caller, state, error_code, approval_id,
    make_timestamptz(requested_us) AS requested_at,
    make_timestamptz(started_us) AS started_at,
    make_timestamptz(ended_us) AS ended_at,
    (coalesce(started_us, ended_us) - requested_us) / 1e6 AS wait_seconds,
    (ended_us - started_us) / 1e6 AS seconds,
    CAST(arguments AS JSON) AS arguments,
    CAST(result AS JSON) AS result
FROM raw_tool_calls
LEFT JOIN (
    SELECT t.id AS task, w.name AS worktree, w.commit_id FROM raw_tasks t JOIN raw_worktrees w ON w.name = t.worktree
) ON task = task_id;

-- The messages of conversations. Tokens and costs that the provider did not report are null. A content of more than 20,000
-- characters is left out; list_messages returns it.
CREATE VIEW messages AS
SELECT id, conversation_id, conversation, definition, number, role, state, content, model, definition_hash, error_code,
    input_tokens, output_tokens, requests, cost_usd, replaced,
    make_timestamptz(created_us) AS created_at,
    make_timestamptz(ended_us) AS ended_at,
    (ended_us - created_us) / 1e6 AS seconds
FROM raw_messages;

-- What agents of the KOI network tell about themselves. contents: their profiles, as JSON.
CREATE VIEW personalities AS
SELECT rid, name, version,
    ROW_NUMBER() OVER (PARTITION BY name ORDER BY published_us DESC, version DESC) = 1 AS is_latest,
    owner, origin, sha256, tools, contents,
    make_timestamptz(published_us) AS published_at,
    make_timestamptz(first_seen_us) AS first_seen,
    make_timestamptz(changed_us) AS changed_at
FROM raw_personalities;

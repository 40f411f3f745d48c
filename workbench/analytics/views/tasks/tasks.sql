-- A dependency that was completed after the first claim (such as a part that was added later) did not delay that claim.
CREATE VIEW tasks AS
WITH first_claim AS (
    SELECT task_id, min(claimed_us) AS claimed_us, sum(ended_us - claimed_us) AS worked_us
    FROM raw_attempts GROUP BY task_id
), ready AS (
    SELECT t.id, greatest(t.created_us, coalesce(max(d.completed_us), 0)) AS ready_us
    FROM raw_tasks t
    LEFT JOIN first_claim c ON c.task_id = t.id
    LEFT JOIN held_back h ON h.task_id = t.id
    LEFT JOIN raw_tasks d ON d.id = h.depends_on AND (c.claimed_us IS NULL OR d.completed_us <= c.claimed_us)
    GROUP BY t.id, t.created_us
)
SELECT t.id, t.title, t.plan, t.name, t.persona, t.worktree, t.parent_id, t.priority, CAST(t.due AS DATE) AS due, t.status, t.evidence, a.agent,
    t.attempt AS attempts, t.retry_count AS retries, t.progress,
    s.name AS session, p.name AS project, t.created_by,
    make_timestamptz(t.created_us) AS created_at,
    make_timestamptz(r.ready_us) AS ready_at,
    make_timestamptz(c.claimed_us) AS claimed_at,
    make_timestamptz(t.completed_us) AS completed_at,
    (c.claimed_us - r.ready_us) / 1e6 AS wait_seconds,
    CASE WHEN t.completed_us IS NOT NULL THEN c.worked_us / 1e6 END AS duration_seconds,
    (t.completed_us - t.created_us) / 1e6 AS lead_seconds,
    CAST(t.result AS JSON) AS result,
    CAST(t.artifacts AS JSON) AS artifacts,
    t.error,
    CAST(t.needs AS JSON) AS needs
FROM raw_tasks t
JOIN ready r ON r.id = t.id
LEFT JOIN first_claim c ON c.task_id = t.id
LEFT JOIN raw_agents a ON a.id = t.agent_uid
LEFT JOIN raw_sessions s ON s.id = t.session_id
LEFT JOIN raw_projects p ON p.id = s.project_id;

COMMENT ON VIEW tasks IS 'Tasks, where they stand, and how long they waited and took.';
COMMENT ON COLUMN tasks.id IS 'Number of the task.';
COMMENT ON COLUMN tasks.title IS 'Its title.';
COMMENT ON COLUMN tasks.plan IS 'The plan that it belongs to.';
COMMENT ON COLUMN tasks.name IS 'Its name within the plan.';
COMMENT ON COLUMN tasks.persona IS 'The persona that may take it.';
COMMENT ON COLUMN tasks.worktree IS 'The worktree that it is to be done in.';
COMMENT ON COLUMN tasks.parent_id IS 'The task that it is a part of.';
COMMENT ON COLUMN tasks.priority IS 'Tasks with a higher priority are claimed first.';
COMMENT ON COLUMN tasks.due IS 'The day by which it is to be done.';
COMMENT ON COLUMN tasks.status IS 'pending, claimed, in_progress, completed, failed or cancelled.';
COMMENT ON COLUMN tasks.evidence IS 'What tells that a completed one is done: said (its agent''s word), changed or unchanged (its branch), checked or flaky (its check).';
COMMENT ON COLUMN tasks.agent IS 'The agent that holds it, or held it last.';
COMMENT ON COLUMN tasks.attempts IS 'How often it was claimed.';
COMMENT ON COLUMN tasks.retries IS 'Retries that were used up by failures and lost leases.';
COMMENT ON COLUMN tasks.progress IS 'Percent done, as its agent reported.';
COMMENT ON COLUMN tasks.session IS 'Name of its session; null: agents of every session may take it.';
COMMENT ON COLUMN tasks.project IS 'Name of the session''s project.';
COMMENT ON COLUMN tasks.created_by IS 'Who created it.';
COMMENT ON COLUMN tasks.created_at IS 'When it was created.';
COMMENT ON COLUMN tasks.ready_at IS 'When it was created and what held it back then was completed.';
COMMENT ON COLUMN tasks.claimed_at IS 'When it was first claimed.';
COMMENT ON COLUMN tasks.completed_at IS 'When it was completed, failed or cancelled; null: it is open.';
COMMENT ON COLUMN tasks.wait_seconds IS 'Seconds from ready_at to the first claim; the view waits has all waits.';
COMMENT ON COLUMN tasks.duration_seconds IS 'Seconds that its attempts took together, from claim to end, without the waits between them; null: it is open.';
COMMENT ON COLUMN tasks.lead_seconds IS 'Seconds from the creation to the end.';
COMMENT ON COLUMN tasks.result IS 'The result that its agent gave, as JSON.';
COMMENT ON COLUMN tasks.artifacts IS 'What it made, as a list of texts in JSON: paths and addresses.';
COMMENT ON COLUMN tasks.error IS 'Why the last attempt did not complete it.';
COMMENT ON COLUMN tasks.needs IS 'What it needs while it is done, as JSON; null: what its persona says.';

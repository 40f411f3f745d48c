CREATE VIEW approvals AS
WITH persons AS (
    SELECT subject, arg_max(data->>'person', id) AS person FROM raw_events
    WHERE kind IN ('approval.approved', 'approval.rejected', 'approval.failed') GROUP BY subject
), askers AS (
    SELECT subject, arg_max(data->>'asker', id) AS asker FROM raw_events WHERE kind = 'approval.requested' GROUP BY subject
)
SELECT p.id, p.kind, p.status,
    coalesce(CASE WHEN a.status = 'pending' THEN a.name ELSE a.agent END, c.tool_name, substr(p.subject, strpos(p.subject, ':') + 1)) AS about,
    coalesce(r.agent, CASE WHEN p.requester = 'anonymous' THEN coalesce(a.name, p.requester) ELSE coalesce(q.asker, p.requester) END) AS asked_by,
    p.decided_by, h.person,
    make_timestamptz(p.created_us) AS created_at,
    make_timestamptz(p.decided_us) AS decided_at,
    (p.decided_us - p.created_us) / 1e6 AS wait_seconds,
    p.reason, p.requester, p.subject
FROM raw_approvals p
LEFT JOIN raw_agents a ON p.subject = 'agent:' || a.id
LEFT JOIN raw_tool_calls c ON p.subject = 'tool_call:' || c.id
LEFT JOIN raw_agents r ON r.id = p.requester_uid
LEFT JOIN persons h ON h.subject = 'approval:' || p.id
LEFT JOIN askers q ON q.subject = 'approval:' || p.id;

COMMENT ON VIEW approvals IS 'Questions to a person: who asked what, who decided, and after how long.';
COMMENT ON COLUMN approvals.id IS 'Number of the approval.';
COMMENT ON COLUMN approvals.kind IS 'What was asked: registration, integration, trust, tool_call, peer_call, question or failure.';
COMMENT ON COLUMN approvals.status IS 'pending, approved, rejected, or failed: no longer possible when it was decided.';
COMMENT ON COLUMN approvals.about IS 'The agent, worktree, tool or definition that it is about, by its present id or name.';
COMMENT ON COLUMN approvals.asked_by IS 'Present id of the agent that asked; of one that registered by itself, its name; of a person, theirs.';
COMMENT ON COLUMN approvals.decided_by IS 'operator, rule:NAME, spawn (who started the agent admitted it with that), the agent that withdrew it, or system.';
COMMENT ON COLUMN approvals.person IS 'Name of the person who decided: the setting person, or the name of the system''s user. Null: no person did.';
COMMENT ON COLUMN approvals.created_at IS 'When it was asked.';
COMMENT ON COLUMN approvals.decided_at IS 'When it was decided.';
COMMENT ON COLUMN approvals.wait_seconds IS 'Seconds from the question to the decision; null: pending.';
COMMENT ON COLUMN approvals.reason IS 'The reason that was given for the decision.';
COMMENT ON COLUMN approvals.requester IS 'Who asked, by the id that it had then.';
COMMENT ON COLUMN approvals.subject IS 'What it is about, as noun:id.';

-- Agents that claim no tasks for now, because what they work with fails: their key or login, their profile, or themselves.

-- What an agent works with: the profile of its program, and its account, a name that does not tell the secret. preferred
-- is its own profile while it works with another one instead, and preferred_account the account of that.
CREATE TABLE agent_programs (
    agent_id TEXT PRIMARY KEY REFERENCES agents (id),
    profile TEXT NOT NULL,
    account TEXT,
    preferred TEXT,
    preferred_account TEXT
) {{strict}};
ALTER TABLE task_attempts ADD COLUMN profile TEXT;

-- scope: account:NAME, profile:NAME or agent:ID. until: when it ends by itself; null: when the person answers
-- approval_id. waits: how many have followed each other without a success. ended: it is over, and tells of its waits only.
CREATE TABLE holds (
    scope TEXT PRIMARY KEY,
    failure TEXT NOT NULL,
    reason TEXT NOT NULL,
    since {{big}} NOT NULL,
    until {{big}},
    approval_id {{big}} REFERENCES approvals (id),
    waits {{big}} NOT NULL DEFAULT 0,
    ended {{big}} NOT NULL DEFAULT 0
) {{strict}};

-- The same failure again and again, without a success between: attempts is a JSON list of [task, attempt].
CREATE TABLE failure_streaks (
    scope TEXT PRIMARY KEY,
    signature TEXT NOT NULL,
    attempts TEXT NOT NULL
) {{strict}};

DROP VIEW agents_seen;
CREATE VIEW agents_seen AS
SELECT a.*, p.assigned_agent_id AS parent, s.name AS session, t.name AS team, d.name AS definition,
    (SELECT COUNT(*) FROM connections c WHERE c.agent_id = a.id AND c.closed_at IS NULL) AS connections,
    (SELECT COUNT(*) FROM task_status k
        WHERE k.assigned_agent_id = a.id AND k.status IN ('claimed', 'in_progress')) AS holding,
    CASE WHEN x.agent_id IS NULL THEN NULL WHEN x.ended_at IS NULL THEN 1 ELSE 0 END AS running,
    h.reason AS held_for, h.until AS held_until
FROM agents a
LEFT JOIN agents p ON p.id = a.parent_agent_id
LEFT JOIN sessions s ON s.id = a.session_id
LEFT JOIN teams t ON t.id = a.team_id
LEFT JOIN processes x ON x.agent_id = a.id
LEFT JOIN definitions d ON d.id = a.definition_id
LEFT JOIN agent_programs w ON w.agent_id = a.id
LEFT JOIN holds h ON h.scope = (
    SELECT o.scope FROM holds o
    WHERE o.ended = 0 AND o.scope IN ('agent:' || a.id, 'profile:' || w.profile, 'account:' || w.account)
    ORDER BY CASE WHEN o.until IS NULL THEN 0 ELSE 1 END, o.until DESC, o.scope LIMIT 1);

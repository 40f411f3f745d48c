-- Tools (spec 4): which agents may call them, every call, and what the operator decided about each.

-- tools: a JSON list of what of the catalogue the agent may call: names of MCP servers and of tools, notebook, or *.
ALTER TABLE agents ADD COLUMN tools TEXT NOT NULL DEFAULT '[]';

DROP VIEW agents_seen;
CREATE VIEW agents_seen AS
SELECT a.*, p.assigned_agent_id AS parent, s.name AS session, t.name AS team, d.name AS definition,
    (SELECT COUNT(*) FROM connections c WHERE c.agent_id = a.id AND c.closed_at IS NULL) AS connections,
    (SELECT COUNT(*) FROM task_status k
        WHERE k.assigned_agent_id = a.id AND k.status IN ('claimed', 'in_progress')) AS holding,
    CASE WHEN x.agent_id IS NULL THEN NULL WHEN x.ended_at IS NULL THEN 1 ELSE 0 END AS running
FROM agents a
LEFT JOIN agents p ON p.id = a.parent_agent_id
LEFT JOIN sessions s ON s.id = a.session_id
LEFT JOIN teams t ON t.id = a.team_id
LEFT JOIN processes x ON x.agent_id = a.id
LEFT JOIN definitions d ON d.id = a.definition_id;

-- id: a UUID version 7, so that calls sort by it. caller: who called, by the name it had then. arguments and result are
-- JSON, whole, with secrets masked. version: of the tool, where it has one. interrupted: the server ended first.
CREATE TABLE tool_calls (
    id TEXT PRIMARY KEY,
    tool_name TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('local', 'mcp')),
    kind TEXT NOT NULL,
    server TEXT,
    version TEXT,
    caller TEXT NOT NULL,
    agent_id TEXT REFERENCES agents (id),
    task_id {{big}} REFERENCES tasks (id),
    attempt {{big}},
    conversation_id TEXT,
    definition_id TEXT,
    definition_hash TEXT,
    arguments TEXT NOT NULL,
    result TEXT,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'completed', 'failed', 'cancelled', 'interrupted')),
    error_code TEXT,
    approval_id {{big}} REFERENCES approvals (id),
    requested_at {{big}} NOT NULL,
    started_at {{big}},
    ended_at {{big}}
) {{strict}};
CREATE INDEX tool_calls_by_tool ON tool_calls (tool_name, id);
CREATE INDEX tool_calls_by_agent ON tool_calls (agent_id, id) WHERE agent_id IS NOT NULL;
CREATE INDEX tool_calls_by_task ON tool_calls (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX tool_calls_by_conversation ON tool_calls (conversation_id, id) WHERE conversation_id IS NOT NULL;
CREATE INDEX tool_calls_unfinished ON tool_calls (id) WHERE ended_at IS NULL;

-- What the operator decided about a tool as it was then. fingerprint: of its description and schemas; offer: these, as
-- JSON, to show what has changed since.
CREATE TABLE tool_permissions (
    tool TEXT PRIMARY KEY,
    permission TEXT NOT NULL CHECK (permission IN ('always', 'ask', 'never')),
    fingerprint TEXT NOT NULL,
    offer TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    decided_at {{big}} NOT NULL
) {{strict}};

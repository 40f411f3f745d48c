-- Agent definitions (spec 2): which there are, which agents have one, and every version that was seen.

-- Definitions are directories; this is what was last read of each. deleted_at: it was deleted by an operation.
CREATE TABLE definitions (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    hash TEXT NOT NULL,
    seen_at {{big}} NOT NULL,
    deleted_at {{big}}
) {{strict}};
CREATE INDEX definitions_by_name ON definitions (name);

-- The versions of each definition, in order. action: created, changed, deleted, or found: somebody else's change.
CREATE TABLE definition_versions (
    number {{id}},
    definition_id TEXT NOT NULL REFERENCES definitions (id),
    hash TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('created', 'changed', 'deleted', 'found')),
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    summary TEXT NOT NULL,
    saved_by TEXT NOT NULL,
    saved_at {{big}} NOT NULL
) {{strict}};
CREATE INDEX definition_versions_in_order ON definition_versions (definition_id, number);

-- What each version says, as JSON, without secrets. Equal contents are stored once.
CREATE TABLE definition_contents (
    hash TEXT PRIMARY KEY,
    content TEXT NOT NULL
) {{strict}};

-- definition_hash: the version that the agent was last started with. may_define: it may manage all definitions.
ALTER TABLE agents ADD COLUMN definition_id TEXT REFERENCES definitions (id);
ALTER TABLE agents ADD COLUMN definition_hash TEXT;
ALTER TABLE agents ADD COLUMN self_tools TEXT NOT NULL DEFAULT 'write' CHECK (self_tools IN ('off', 'read', 'write'));
ALTER TABLE agents ADD COLUMN may_define {{big}} NOT NULL DEFAULT 0;
CREATE INDEX agents_by_definition ON agents (definition_id) WHERE definition_id IS NOT NULL;

ALTER TABLE processes ADD COLUMN definition_hash TEXT;
ALTER TABLE task_attempts ADD COLUMN definition_id TEXT;
ALTER TABLE task_attempts ADD COLUMN definition_hash TEXT;
CREATE INDEX task_attempts_by_definition ON task_attempts (definition_id) WHERE definition_id IS NOT NULL;

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

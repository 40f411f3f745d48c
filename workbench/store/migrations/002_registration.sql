-- Projects, sessions, teams and contexts; what an agent is granted, how it is connected, and what tools
-- may touch (spec 1). Rows with deleted_at are gone for everyone, and can be restored.

CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    created_at {{big}} NOT NULL,
    updated_at {{big}} NOT NULL,
    deleted_at {{big}}
) {{strict}};
CREATE UNIQUE INDEX projects_by_name ON projects (name) WHERE deleted_at IS NULL;

-- contexts counts those ever written: it is the last sequence number given out. used_at: an agent was put into it.
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    contexts {{big}} NOT NULL DEFAULT 0,
    used_at {{big}},
    created_at {{big}} NOT NULL,
    updated_at {{big}} NOT NULL,
    deleted_at {{big}}
) {{strict}};
CREATE UNIQUE INDEX sessions_by_name ON sessions (project_id, name) WHERE deleted_at IS NULL;

-- A team without a session is one that waits to be put into one.
CREATE TABLE teams (
    id TEXT PRIMARY KEY,
    session_id TEXT REFERENCES sessions (id),
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    created_at {{big}} NOT NULL,
    updated_at {{big}} NOT NULL,
    deleted_at {{big}}
) {{strict}};
CREATE UNIQUE INDEX teams_by_name ON teams (COALESCE(session_id, ''), name) WHERE deleted_at IS NULL;

ALTER TABLE agents ADD COLUMN session_id TEXT REFERENCES sessions (id);
ALTER TABLE agents ADD COLUMN team_id TEXT REFERENCES teams (id);
ALTER TABLE agents ADD COLUMN access_level TEXT NOT NULL DEFAULT 'self_only'
    CHECK (access_level IN ('self_only', 'team_level', 'session_level'));
ALTER TABLE agents ADD COLUMN expires_at {{big}};
ALTER TABLE agents ADD COLUMN expired {{big}} NOT NULL DEFAULT 0;
-- 1: a migration brought it; it authenticates by its id alone until it is given a token.
ALTER TABLE agents ADD COLUMN id_only {{big}} NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN connection_id TEXT;
ALTER TABLE agents ADD COLUMN client TEXT;
ALTER TABLE agents ADD COLUMN address TEXT;
ALTER TABLE agents ADD COLUMN deleted_at {{big}};
CREATE INDEX agents_by_session ON agents (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX agents_by_team ON agents (team_id) WHERE team_id IS NOT NULL;
CREATE INDEX agents_expiring ON agents (expires_at) WHERE expires_at IS NOT NULL AND expired = 0;
CREATE INDEX agents_active ON agents (last_heartbeat) WHERE registration_status = 'active';

-- server: the nonce of the server that held it; after a crash another one closes it.
CREATE TABLE connections (
    id {{id}},
    agent_id TEXT NOT NULL REFERENCES agents (id),
    transport TEXT NOT NULL CHECK (transport IN ('websocket', 'sse', 'mcp')),
    client_id TEXT NOT NULL,
    client TEXT,
    address TEXT,
    server TEXT NOT NULL,
    opened_at {{big}} NOT NULL,
    closed_at {{big}}
) {{strict}};
CREATE INDEX connections_open ON connections (agent_id) WHERE closed_at IS NULL;
CREATE INDEX connections_by_agent ON connections (agent_id, id);

CREATE TABLE agent_tools (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    permissions TEXT NOT NULL,
    enabled {{big}} NOT NULL DEFAULT 1,
    created_at {{big}} NOT NULL,
    updated_at {{big}} NOT NULL
) {{strict}};
INSERT INTO agent_tools (id, name, description, permissions, created_at, updated_at) VALUES
    ('register', 'Register', 'Register as a new agent',
        '{"read": ["agent_registration"], "write": ["agent_registration"]}', {{now}}, {{now}}),
    ('read', 'Read', 'Read what was granted',
        '{"read": ["contexts", "sessions", "projects", "teams", "agents", "tasks"], "write": []}', {{now}}, {{now}}),
    ('write', 'Write', 'Read what was granted, and write contexts',
        '{"read": ["contexts", "sessions", "projects", "teams", "agents", "tasks"], "write": ["contexts"]}',
        {{now}}, {{now}});

-- number is what full-text search joins on. A migration may bring contexts that have no session.
CREATE TABLE contexts (
    number {{id}},
    id TEXT NOT NULL UNIQUE,
    project_id TEXT REFERENCES projects (id),
    session_id TEXT REFERENCES sessions (id),
    agent_id TEXT REFERENCES agents (id),
    sequence_number {{big}},
    title TEXT NOT NULL,
    content TEXT NOT NULL,
    metadata TEXT NOT NULL,
    created_at {{big}} NOT NULL,
    updated_at {{big}} NOT NULL,
    deleted_at {{big}},
    UNIQUE (session_id, sequence_number)
) {{strict}};
CREATE INDEX contexts_by_agent ON contexts (agent_id, number);
CREATE INDEX contexts_by_session ON contexts (session_id, number);
CREATE INDEX contexts_by_change ON contexts (updated_at);
CREATE INDEX contexts_deleted ON contexts (session_id) WHERE deleted_at IS NOT NULL;

{{sqlite}}
CREATE VIRTUAL TABLE contexts_text USING fts5 (
    title, content, content = 'contexts', content_rowid = 'number', tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TRIGGER contexts_text_insert AFTER INSERT ON contexts BEGIN
    INSERT INTO contexts_text (rowid, title, content) VALUES (new.number, new.title, new.content);
END;
CREATE TRIGGER contexts_text_delete AFTER DELETE ON contexts BEGIN
    INSERT INTO contexts_text (contexts_text, rowid, title, content)
    VALUES ('delete', old.number, old.title, old.content);
END;
CREATE TRIGGER contexts_text_update AFTER UPDATE OF title, content ON contexts BEGIN
    INSERT INTO contexts_text (contexts_text, rowid, title, content)
    VALUES ('delete', old.number, old.title, old.content);
    INSERT INTO contexts_text (rowid, title, content) VALUES (new.number, new.title, new.content);
END;
{{end}}
{{postgres}}
ALTER TABLE contexts ADD COLUMN search tsvector
    GENERATED ALWAYS AS (to_tsvector('simple', title || ' ' || content)) STORED;
CREATE INDEX contexts_text ON contexts USING GIN (search);
{{end}}

-- Ids that agents had before they were renamed: nobody else gets them, or would inherit what they stand for.
CREATE TABLE former_ids (
    agent_id TEXT PRIMARY KEY,
    id TEXT NOT NULL REFERENCES agents (id)
) {{strict}};

-- Who is admitted without being asked about. grants is the choices of an approval, as JSON.
CREATE TABLE admission_rules (
    id {{id}},
    name TEXT NOT NULL UNIQUE,
    pattern TEXT NOT NULL,
    loopback_only {{big}} NOT NULL,
    grants TEXT NOT NULL,
    created_at {{big}} NOT NULL
) {{strict}};

-- An agent with what is known of it elsewhere. running: its process, null if it has none of ours.
CREATE VIEW agents_seen AS
SELECT a.*, p.assigned_agent_id AS parent, s.name AS session, t.name AS team,
    (SELECT COUNT(*) FROM connections c WHERE c.agent_id = a.id AND c.closed_at IS NULL) AS connections,
    (SELECT COUNT(*) FROM task_status k
        WHERE k.assigned_agent_id = a.id AND k.status IN ('claimed', 'in_progress')) AS holding,
    CASE WHEN x.agent_id IS NULL THEN NULL WHEN x.ended_at IS NULL THEN 1 ELSE 0 END AS running
FROM agents a
LEFT JOIN agents p ON p.id = a.parent_agent_id
LEFT JOIN sessions s ON s.id = a.session_id
LEFT JOIN teams t ON t.id = a.team_id
LEFT JOIN processes x ON x.agent_id = a.id;

-- What is looked up of an agent with each of its messages. A team that was deleted grants nothing.
CREATE VIEW callers AS
SELECT a.id, a.assigned_agent_id, a.token_hash, a.registration_status, a.persona_id, a.role, a.tool,
    a.assigned_worktree, a.session_id, a.access_level,
    (SELECT t.id FROM teams t WHERE t.id = a.team_id AND t.deleted_at IS NULL) AS team_id,
    a.expires_at, a.deleted_at, a.id_only, a.last_heartbeat,
    (SELECT enabled FROM agent_tools WHERE id = 'read') AS may_read,
    (SELECT enabled FROM agent_tools WHERE id = 'write') AS may_write
FROM agents a;

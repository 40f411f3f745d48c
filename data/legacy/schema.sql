-- The database of the old server, as programs of three ages left it. Each part adds to the one before.

-- part: first
CREATE TABLE projects (
    id TEXT PRIMARY KEY, name TEXT, description TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP, deleted_at TIMESTAMP
);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, name TEXT, project_id TEXT REFERENCES projects (id), description TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP, deleted_at TIMESTAMP
);
CREATE TABLE teams (
    id TEXT PRIMARY KEY, name TEXT, session_id TEXT REFERENCES sessions (id), description TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP, deleted_at TIMESTAMP
);
CREATE TABLE agents (
    id TEXT PRIMARY KEY, name TEXT, session_id TEXT REFERENCES sessions (id), team_id TEXT REFERENCES teams (id),
    status TEXT DEFAULT 'disconnected', last_active TIMESTAMP,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP, deleted_at TIMESTAMP
);

-- part: contexts
CREATE TABLE contexts (
    id TEXT PRIMARY KEY, title TEXT, content TEXT, project_id TEXT REFERENCES projects (id),
    session_id TEXT REFERENCES sessions (id), agent_id TEXT REFERENCES agents (id), sequence_number INTEGER,
    metadata TEXT, created_at TIMESTAMP, updated_at TIMESTAMP, deleted_at TIMESTAMP
);

-- part: registration
ALTER TABLE agents ADD COLUMN registration_status TEXT DEFAULT 'assigned';
ALTER TABLE agents ADD COLUMN selected_tool TEXT DEFAULT 'write';
ALTER TABLE agents ADD COLUMN assigned_agent_id TEXT;
ALTER TABLE agents ADD COLUMN connection_id TEXT;
ALTER TABLE agents ADD COLUMN capabilities TEXT DEFAULT '{}';
UPDATE agents SET assigned_agent_id = id;
CREATE TABLE agent_tools (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, description TEXT, permissions TEXT, enabled BOOLEAN DEFAULT 1,
    created_at TIMESTAMP, updated_at TIMESTAMP
);
INSERT INTO agent_tools (id, name) VALUES ('register', 'Register'), ('read', 'Read'), ('write', 'Write');

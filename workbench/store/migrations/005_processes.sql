-- Agents that are spawned wait for room, are started again, and are limited and confined (spec 3).

-- What an agent was spawned with. orders and confinement are JSON; no secret is ever in them. A spawn is queued until
-- there is room, starting while its process is made, then started; given up if it was ended before it began.
CREATE TABLE spawns (
    agent_id TEXT PRIMARY KEY REFERENCES agents (id),
    profile TEXT NOT NULL,
    orders TEXT NOT NULL,
    confinement TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'starting', 'started', 'given_up')),
    reason TEXT,
    scratch TEXT,
    spawned_by TEXT REFERENCES agents (id),
    asked_at {{big}} NOT NULL
) {{strict}};
CREATE INDEX spawns_waiting ON spawns (asked_at) WHERE state IN ('queued', 'starting');
CREATE INDEX spawns_with_scratch ON spawns (agent_id) WHERE scratch IS NOT NULL;
INSERT INTO spawns (agent_id, profile, orders, confinement, state, spawned_by, asked_at)
    SELECT p.agent_id, p.profile, '{}', '{"enforced": false, "missing": []}', 'started', a.parent_agent_id, p.spawned_at
    FROM processes p JOIN agents a ON a.id = p.agent_id;

ALTER TABLE processes ADD COLUMN reason TEXT;

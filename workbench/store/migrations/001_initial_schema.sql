-- Agents, tasks and worktrees, and the feed of events about them (spec 3, with spec 1's registration).
-- Times are microseconds UTC; JSON is TEXT; machine-made ids are UUIDv7 text, task ids small integers.

CREATE TABLE events (
    id {{id}},
    at {{big}} NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    subject TEXT NOT NULL,
    session TEXT,
    data TEXT NOT NULL
) {{strict}};
CREATE INDEX events_by_subject ON events (subject, id);

CREATE TABLE personas (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('worker', 'planner')),
    definition TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    source TEXT NOT NULL,
    updated_at {{big}} NOT NULL
) {{strict}};

CREATE TABLE worktrees (
    name TEXT PRIMARY KEY,
    branch_name TEXT NOT NULL,
    base_commit TEXT NOT NULL,
    integration_target TEXT NOT NULL,
    path TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'integrating', 'integrated', 'discarded')),
    integrated_commit TEXT,
    created_by TEXT NOT NULL,
    created_at {{big}} NOT NULL,
    closed_at {{big}}
) {{strict}};

CREATE TABLE agents (
    id TEXT PRIMARY KEY,
    assigned_agent_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    registration_status TEXT NOT NULL CHECK (
        registration_status IN ('pending', 'assigned', 'active', 'inactive', 'rejected', 'revoked')
    ),
    token_hash TEXT NOT NULL UNIQUE,
    persona_id TEXT REFERENCES personas (id),
    role TEXT NOT NULL CHECK (role IN ('worker', 'planner')),
    tool TEXT NOT NULL CHECK (tool IN ('read', 'write')),
    capabilities TEXT NOT NULL,
    assigned_worktree TEXT REFERENCES worktrees (name),
    parent_agent_id TEXT REFERENCES agents (id),
    registered_at {{big}} NOT NULL,
    last_heartbeat {{big}} NOT NULL
) {{strict}};
CREATE INDEX agents_by_status ON agents (registration_status, registered_at);
CREATE INDEX agents_by_parent ON agents (parent_agent_id) WHERE parent_agent_id IS NOT NULL;
CREATE INDEX agents_by_worktree ON agents (assigned_worktree) WHERE assigned_worktree IS NOT NULL;

CREATE TABLE processes (
    agent_id TEXT PRIMARY KEY REFERENCES agents (id),
    pid {{big}} NOT NULL,
    started {{real}} NOT NULL,
    profile TEXT NOT NULL,
    log TEXT NOT NULL,
    spawned_at {{big}} NOT NULL,
    ended_at {{big}},
    exit_code {{big}}
) {{strict}};
CREATE INDEX processes_running ON processes (spawned_at) WHERE ended_at IS NULL;

CREATE TABLE approvals (
    id {{id}},
    kind TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'failed')),
    requester TEXT NOT NULL,
    subject TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_at {{big}} NOT NULL,
    decided_at {{big}},
    decided_by TEXT,
    reason TEXT,
    outcome TEXT
) {{strict}};
CREATE INDEX approvals_pending ON approvals (id) WHERE status = 'pending';
CREATE INDEX approvals_by_subject ON approvals (subject, id);

-- What a task is. How it stands is in task_status, so that claims touch small rows only.
CREATE TABLE tasks (
    id {{id}},
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    persona_id TEXT NOT NULL REFERENCES personas (id),
    parent_id {{big}} REFERENCES tasks (id),
    target_worktree TEXT,
    plan TEXT,
    name TEXT,
    run TEXT,
    context_ref TEXT,
    metadata TEXT NOT NULL,
    max_retries {{big}} NOT NULL,
    lease_us {{big}} NOT NULL,
    created_by TEXT NOT NULL,
    created_at {{big}} NOT NULL,
    UNIQUE (plan, name)
) {{strict}};
CREATE INDEX tasks_by_parent ON tasks (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE task_dependencies (
    task_id {{big}} NOT NULL REFERENCES tasks (id),
    depends_on {{big}} NOT NULL REFERENCES tasks (id),
    PRIMARY KEY (task_id, depends_on),
    CHECK (task_id <> depends_on)
) {{strict}};
CREATE INDEX task_dependents ON task_dependencies (depends_on);

-- persona_id and worktree ('' for none) repeat what tasks say: they are the keys of a claim.
CREATE TABLE task_status (
    task_id {{big}} PRIMARY KEY REFERENCES tasks (id),
    status TEXT NOT NULL CHECK (
        status IN ('pending', 'claimed', 'in_progress', 'completed', 'failed', 'cancelled')
    ),
    persona_id TEXT NOT NULL,
    worktree TEXT NOT NULL,
    priority {{big}} NOT NULL,
    unmet {{big}} NOT NULL,
    not_before {{big}},
    reserved_for TEXT REFERENCES agents (id),
    assigned_agent_id TEXT REFERENCES agents (id),
    attempt {{big}} NOT NULL,
    retry_count {{big}} NOT NULL,
    progress {{big}} NOT NULL,
    claimed_at {{big}},
    started_at {{big}},
    completed_at {{big}},
    lease_expires_at {{big}},
    result_data TEXT,
    artifacts TEXT,
    error_message TEXT
) {{strict}};
CREATE INDEX tasks_ready ON task_status (persona_id, worktree, priority DESC, task_id)
    WHERE status = 'pending' AND unmet = 0 AND not_before IS NULL AND reserved_for IS NULL;
CREATE INDEX tasks_ready_for ON task_status (reserved_for, priority DESC, task_id)
    WHERE status = 'pending' AND unmet = 0 AND not_before IS NULL AND reserved_for IS NOT NULL;
CREATE INDEX tasks_held ON task_status (assigned_agent_id, task_id)
    WHERE status IN ('claimed', 'in_progress');
CREATE INDEX tasks_leased ON task_status (lease_expires_at) WHERE lease_expires_at IS NOT NULL;
CREATE INDEX tasks_resting ON task_status (not_before) WHERE not_before IS NOT NULL;
CREATE INDEX tasks_by_status ON task_status (status, task_id);

CREATE TABLE task_attempts (
    task_id {{big}} NOT NULL REFERENCES tasks (id),
    attempt {{big}} NOT NULL,
    agent_id TEXT NOT NULL REFERENCES agents (id),
    claimed_at {{big}} NOT NULL,
    started_at {{big}},
    ended_at {{big}},
    outcome TEXT,
    error_message TEXT,
    PRIMARY KEY (task_id, attempt)
) {{strict}};

CREATE TABLE task_logs (
    id {{id}},
    task_id {{big}} NOT NULL REFERENCES tasks (id),
    agent_id TEXT NOT NULL REFERENCES agents (id),
    level TEXT NOT NULL CHECK (level IN ('debug', 'info', 'warn', 'error')),
    message TEXT NOT NULL,
    logged_at {{big}} NOT NULL
) {{strict}};
CREATE INDEX task_logs_by_task ON task_logs (task_id, id);

-- name: tasks
SELECT t.id, t.title, t.plan, t.name, s.persona_id AS persona, t.target_worktree AS worktree, t.parent_id,
    s.priority, t.due, t.session_id, t.on_failure, t.created_by, s.status, s.assigned_agent_id AS agent_uid, s.attempt,
    s.retry_count, s.progress, t.created_at AS created_us, s.claimed_at AS claimed_us, s.started_at AS started_us,
    s.completed_at AS completed_us, s.result_data AS result, s.artifacts, s.error_message AS error,
    s.evidence, s.needs, s.approval_id
FROM tasks t
JOIN task_status s ON s.task_id = t.id
WHERE CAST(:keys AS TEXT) IS NULL OR t.id IN (SELECT CAST(k.value AS {{big}}) FROM {{rows_of keys}} AS k)
ORDER BY t.id;

-- name: attempts
SELECT x.task_id, x.attempt, x.machine, x.agent_id AS agent_uid, x.claimed_at AS claimed_us, x.started_at AS started_us,
    x.ended_at AS ended_us, x.outcome, x.error_message AS error, x.error_class, d.name AS definition, x.definition_hash,
    x.prompt_hash, x.include, w.base_commit, w.kept_commit, x.profile, x.input_tokens, x.output_tokens, x.cost_usd,
    x.plan, x.session_id, x.persona_id AS persona, x.run_id,
    x.leased
FROM task_attempts x
LEFT JOIN definitions d ON d.id = x.definition_id
LEFT JOIN attempt_work w ON w.task_id = x.task_id AND w.attempt = x.attempt
WHERE CAST(:keys AS TEXT) IS NULL OR x.task_id IN (SELECT CAST(k.value AS {{big}}) FROM {{rows_of keys}} AS k)
ORDER BY x.task_id, x.attempt;

-- name: checks
SELECT task_id, attempt, check_stated AS command, commit_hash AS commit_id, state, tries, exit_code,
    asked_at AS asked_us, started_at AS started_us, ended_at AS ended_us, metrics, output
FROM attempt_checks
WHERE CAST(:keys AS TEXT) IS NULL OR task_id IN (SELECT CAST(k.value AS {{big}}) FROM {{rows_of keys}} AS k)
ORDER BY task_id, attempt;

-- name: resources
SELECT machine, name, device, amount, vram, problem FROM resources
WHERE CAST(:keys AS TEXT) IS NULL OR name IN (SELECT k.value FROM {{rows_of keys}} AS k)
ORDER BY machine, name, device;

-- name: messages
SELECT m.id, m.kind, m.sender, a.assigned_agent_id AS recipient, m.task_id, m.attempt, m.body, m.approval_id,
    m.sent_at AS sent_us, m.seen_at AS seen_us, m.acted_at AS acted_us
FROM messages m
LEFT JOIN agents a ON a.id = m.agent_id
WHERE CAST(:keys AS TEXT) IS NULL OR m.id IN (SELECT CAST(k.value AS {{big}}) FROM {{rows_of keys}} AS k)
ORDER BY m.id;

-- name: dependencies
SELECT task_id, depends_on FROM task_dependencies
WHERE CAST(:keys AS TEXT) IS NULL OR task_id IN (SELECT CAST(k.value AS {{big}}) FROM {{rows_of keys}} AS k)
ORDER BY task_id, depends_on;

-- name: agents
SELECT a.id, a.assigned_agent_id AS agent, a.name, a.registration_status AS status, a.persona_id AS persona,
    a.role, a.tool, a.assigned_worktree AS worktree, p.assigned_agent_id AS parent, a.session_id,
    d.name AS definition, a.definition_hash, a.registered_at AS registered_us
FROM agents a
LEFT JOIN agents p ON p.id = a.parent_agent_id
LEFT JOIN definitions d ON d.id = a.definition_id
WHERE CAST(:keys AS TEXT) IS NULL OR a.id IN (SELECT k.value FROM {{rows_of keys}} AS k)
ORDER BY a.registered_at, a.id;

-- name: sessions
SELECT id, name, project_id, created_at AS created_us FROM sessions
WHERE CAST(:keys AS TEXT) IS NULL OR id IN (SELECT k.value FROM {{rows_of keys}} AS k)
ORDER BY created_at, id;

-- name: projects
SELECT id, name FROM projects
WHERE CAST(:keys AS TEXT) IS NULL OR id IN (SELECT k.value FROM {{rows_of keys}} AS k)
ORDER BY created_at, id;

-- name: processes
SELECT p.agent_id AS agent_uid, COALESCE(s.machine, '') AS machine, p.profile, p.pid, p.spawned_at AS spawned_us, p.ended_at AS ended_us,
    p.exit_code, p.reason
FROM processes p LEFT JOIN spawns s ON s.agent_id = p.agent_id
WHERE CAST(:keys AS TEXT) IS NULL OR p.agent_id IN (SELECT k.value FROM {{rows_of keys}} AS k)
ORDER BY p.spawned_at, p.agent_id;

-- name: process_samples
SELECT id, kind, owner, pid, at AS at_us, cpu_seconds, memory_bytes, processes
FROM process_samples WHERE id > :after ORDER BY id;

-- name: approvals
SELECT p.id, p.kind, p.status, p.requester, p.subject, p.created_at AS created_us, p.decided_at AS decided_us,
    p.decided_by, p.reason, coalesce(a.id, f.id) AS requester_uid,
    CASE WHEN p.kind = 'integration' THEN p.payload END AS payload,
    CASE WHEN p.kind = 'integration' THEN p.outcome END AS outcome
FROM approvals p
LEFT JOIN agents a ON a.assigned_agent_id = p.requester
LEFT JOIN former_ids f ON f.agent_id = p.requester
WHERE CAST(:keys AS TEXT) IS NULL OR p.id IN (SELECT CAST(k.value AS {{big}}) FROM {{rows_of keys}} AS k)
ORDER BY p.id;

-- name: worktrees
SELECT name, branch_name AS branch, integration_target AS target, status, machine, integrated_commit AS commit_id,
    created_by, created_at AS created_us, closed_at AS closed_us
FROM worktrees
WHERE CAST(:keys AS TEXT) IS NULL OR name IN (SELECT k.value FROM {{rows_of keys}} AS k)
ORDER BY created_at, name;

-- name: tool_calls
SELECT c.id, c.tool_name, c.source, c.kind, c.server, c.offered_by, c.offerer_name, c.configuration,
    c.version, c.caller, c.agent_id AS agent_uid, c.task_id,
    c.attempt, c.conversation_id, c.definition_id, c.definition_hash, c.origin_node, c.origin_call, c.origin_caller,
    c.state, c.error_code, c.approval_id, c.requested_at AS requested_us, c.started_at AS started_us,
    c.ended_at AS ended_us, c.progress, c.progress_total, c.progress_message, c.input_tokens, c.output_tokens,
    c.cost_usd,
    CASE WHEN length(c.arguments) <= 20000 THEN c.arguments END AS arguments,
    CASE WHEN length(c.result) <= 20000 THEN c.result END AS result
FROM tool_calls c
WHERE CAST(:keys AS TEXT) IS NULL OR c.id IN (SELECT k.value FROM {{rows_of keys}} AS k)
ORDER BY c.id;

-- name: conversations
SELECT c.id, c.title, d.name AS definition
FROM conversations c LEFT JOIN definitions d ON d.id = c.definition_id
WHERE CAST(:keys AS TEXT) IS NULL OR c.id IN (SELECT k.value FROM {{rows_of keys}} AS k)
ORDER BY c.id;

-- name: turns
SELECT t.id, t.conversation_id, t.number, t.role, t.state,
    CASE WHEN length(t.content) <= 20000 THEN t.content END AS content, t.model, t.definition_hash, t.prompt_hash,
    t.include, t.end_reason, t.cut_at, t.error_code, t.input_tokens, t.output_tokens, t.requests, t.unmeasured, t.cost_usd, t.replaced_at IS NOT NULL AS replaced,
    t.created_at AS created_us, t.ended_at AS ended_us
FROM turns t
WHERE CAST(:keys AS TEXT) IS NULL OR t.id IN (SELECT k.value FROM {{rows_of keys}} AS k)
ORDER BY t.conversation_id, t.number;

-- name: model_requests
SELECT r.turn_id, r.number, r.conversation_id, r.purpose, t.model, r.started_at AS started_us, r.seconds,
    r.first_token_seconds, r.input_tokens, r.cached_tokens, r.cache_write_tokens, r.output_tokens, r.thinking_tokens,
    r.cost_usd, r.end_reason, r.error_code
FROM model_requests r JOIN turns t ON t.id = r.turn_id
WHERE CAST(:keys AS TEXT) IS NULL OR r.turn_id IN (SELECT k.value FROM {{rows_of keys}} AS k)
ORDER BY r.turn_id, r.number;

-- name: personalities
SELECT p.name || '/' || p.version AS reference, p.rid, p.name, p.version, p.owner, b.origin, b.sha256, p.tools, b.contents,
    b.manifest_at AS published_us, b.first_seen AS first_seen_us, b.changed_at AS changed_us
FROM personalities p JOIN koi_bundles b ON b.rid = p.rid
WHERE CAST(:keys AS TEXT) IS NULL OR p.name || '/' || p.version IN (SELECT k.value FROM {{rows_of keys}} AS k)
ORDER BY p.name, p.version;

-- name: runs
SELECT r.id, r.key, r.name, r.sweep_id, r.parent_id, w.name AS sweep, r.notebook, r.state, r.error_code, r.error, r.tries,
    r.session_id, r.git_commit, r.git_dirty, r.output, r.created_by, r.notes,
    (SELECT {{sqlite}}group_concat{{end}}{{postgres}}string_agg{{end}}(t.tag, ' ')
        FROM run_tags t WHERE t.run_id = r.id) AS tags,
    r.parameters, r.definitions, r.environment, r.archived_at AS archived_us, r.started_at AS started_us,
    r.ended_at AS ended_us
FROM runs r
LEFT JOIN sweeps w ON w.id = r.sweep_id
WHERE CAST(:keys AS TEXT) IS NULL OR r.id IN (SELECT CAST(k.value AS {{big}}) FROM {{rows_of keys}} AS k)
ORDER BY r.id;

-- name: run_metrics
SELECT id, run_id, name, step, at AS at_us, value, text FROM run_metrics WHERE id > :after
UNION ALL
SELECT id, run_id, name, step, at AS at_us, value, text FROM run_metrics
WHERE id <= :after AND run_id IN (SELECT CAST(k.value AS {{big}}) FROM {{rows_of keys}} AS k)
ORDER BY id;

-- name: spending
SELECT s.id, s.at AS at_us, s.source, s.provider, s.model, s.agent_id AS agent_uid, s.task_id, s.attempt, s.plan,
    s.session_id, d.name AS definition, s.definition_hash, s.run_id, s.conversation_id, s.status, s.error_code,
    s.seconds, s.first_byte_seconds, s.input_tokens, s.cached_tokens, s.cache_write_tokens, s.cache_write_hour_tokens,
    s.output_tokens, s.reasoning_tokens, s.is_cut, s.is_estimated, s.cost_usd, s.persona_id AS persona
FROM spending s LEFT JOIN definitions d ON d.id = s.definition_id
WHERE s.id > :after ORDER BY s.id;

-- name: budgets
SELECT scope, tokens, usd, attempts, seconds, stopped, stated_by, set_at AS set_us FROM budgets
WHERE CAST(:keys AS TEXT) IS NULL OR scope IN (SELECT k.value FROM {{rows_of keys}} AS k)
ORDER BY scope;

-- name: transcripts
SELECT id, task_id, attempt, at AS at_us, role, chain, node, SUBSTR(content, 1, 4000) AS content
FROM transcript WHERE id > :after ORDER BY id;

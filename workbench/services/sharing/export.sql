-- name: projects
SELECT id, name, description, created_at, updated_at FROM projects
WHERE id > :after AND deleted_at IS NULL ORDER BY id LIMIT :limit;

-- name: sessions
SELECT s.id, s.project_id, p.name AS project, s.name, s.description, s.created_at, s.updated_at
FROM sessions s JOIN projects p ON p.id = s.project_id
WHERE s.id > :after AND COALESCE(s.deleted_at, p.deleted_at) IS NULL ORDER BY s.id LIMIT :limit;

-- name: teams
SELECT t.id, t.session_id, s.name AS session, t.name, t.description, t.created_at, t.updated_at
FROM teams t LEFT JOIN sessions s ON s.id = t.session_id LEFT JOIN projects p ON p.id = s.project_id
WHERE t.id > :after AND COALESCE(t.deleted_at, s.deleted_at, p.deleted_at) IS NULL ORDER BY t.id LIMIT :limit;

-- name: contexts
SELECT c.number, c.id, COALESCE(s.project_id, c.project_id) AS project_id, c.session_id, s.name AS session,
    c.sequence_number, a.assigned_agent_id AS agent_id, c.title, c.content, c.metadata, c.created_at, c.updated_at
FROM contexts c
LEFT JOIN sessions s ON s.id = c.session_id
LEFT JOIN projects p ON p.id = COALESCE(s.project_id, c.project_id)
LEFT JOIN agents a ON a.id = c.agent_id
WHERE c.number > :after AND COALESCE(c.deleted_at, s.deleted_at, p.deleted_at) IS NULL
ORDER BY c.number LIMIT :limit;

-- name: agents
SELECT id, assigned_agent_id AS agent_id, name, registration_status, persona_id, role, tool, access_level,
    session_id, session, team_id, team, assigned_worktree AS worktree, parent, capabilities, client, address,
    expires_at, registered_at, last_heartbeat
FROM agents_seen WHERE id > :after AND deleted_at IS NULL ORDER BY id LIMIT :limit;

-- name: tasks
SELECT t.id, t.title, t.description, s.persona_id, s.priority,
    {{sqlite}}
    (SELECT json_group_array(d.depends_on) FROM
        (SELECT depends_on FROM task_dependencies WHERE task_id = t.id ORDER BY depends_on) d) AS dependencies,
    {{end}}
    {{postgres}}
    (SELECT CAST(COALESCE(jsonb_agg(d.depends_on ORDER BY d.depends_on), '[]') AS TEXT)
        FROM task_dependencies d WHERE d.task_id = t.id) AS dependencies,
    {{end}}
    t.parent_id AS parent_task_id, t.plan, t.name, t.target_worktree, r.assigned_agent_id AS reserved_for, t.run,
    t.check_stated AS "check", t.done_when, s.needs, t.max_retries,
    CAST(t.lease_us AS {{real}}) / 1000000 AS lease_seconds, t.context_ref, t.metadata, t.session_id, e.name AS session,
    t.on_failure, t.no_retry, t.due, CASE WHEN s.approval_id IS NULL THEN 1 ELSE 0 END AS approved, s.status,
    a.assigned_agent_id, s.retry_count, s.not_before, s.progress, s.result_data, s.artifacts, s.error_message,
    s.evidence, t.created_by, t.created_at, s.started_at, s.completed_at
FROM tasks t
JOIN task_status s ON s.task_id = t.id
LEFT JOIN agents a ON a.id = s.assigned_agent_id
LEFT JOIN agents r ON r.id = s.reserved_for
LEFT JOIN sessions e ON e.id = t.session_id
WHERE t.id > :after ORDER BY t.id LIMIT :limit;

-- name: events
SELECT id, at, kind, actor, subject, session, data FROM events WHERE id > :after ORDER BY id LIMIT :limit;

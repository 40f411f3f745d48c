-- part: line
-- The columns of a summary, those that the holder needs, whether another task depends on it, and whether its attempt is
-- supervised.
SELECT t.id, t.title, t.parent_id, t.plan, t.name, t.session_id, t.max_retries, t.lease_us, t.on_failure, t.no_retry, t.due, t.check_stated,
    CASE WHEN t.run IS NULL THEN 0 ELSE 1 END AS has_run,
    t.done_when, s.evidence, s.status, s.persona_id, s.worktree, s.priority, s.unmet, s.progress, s.attempt, s.retry_count, s.not_before,
    s.error_message, s.assigned_agent_id, a.assigned_agent_id AS holder,
    EXISTS (SELECT 1 FROM task_dependencies d WHERE d.depends_on = t.id) AS awaited,
    EXISTS (SELECT 1 FROM attempt_work w WHERE w.task_id = t.id AND w.attempt = s.attempt) AS supervised
FROM tasks t
JOIN task_status s ON s.task_id = t.id
LEFT JOIN agents a ON a.id = s.assigned_agent_id

-- part: crew
-- An agent and those it spawned.
crew (id) AS (
    SELECT CAST(:agent AS TEXT)
    UNION
    SELECT a.id FROM agents a JOIN crew c ON a.parent_agent_id = c.id
)

-- part: names
-- `created_by` is the name that the creator had then, so former names count as well.
SELECT g.assigned_agent_id AS name FROM agents g JOIN crew c ON g.id = c.id
UNION ALL
SELECT f.agent_id FROM former_ids f JOIN crew c ON f.id = c.id

-- name: get
SELECT t.id, t.title, t.description, t.parent_id, t.plan, t.name, t.run, t.check_stated, t.done_when, t.context_ref, t.metadata,
    t.max_retries, t.lease_us, t.session_id, t.on_failure, t.no_retry, t.due, t.created_by, t.created_at,
    s.status, s.persona_id, s.worktree, s.priority, s.unmet, s.not_before, s.reserved_for,
    s.assigned_agent_id, s.attempt, s.retry_count, s.progress, s.claimed_at, s.started_at,
    s.completed_at, s.lease_expires_at, s.result_data, s.artifacts, s.error_message, s.evidence, s.approval_id,
    s.needs,
    (SELECT x.leased FROM task_attempts x WHERE x.task_id = t.id AND x.attempt = s.attempt) AS leased,
    a.assigned_agent_id AS holder, a.definition_id AS holder_definition, r.assigned_agent_id AS reserved_name,
    EXISTS (SELECT 1 FROM task_dependencies d WHERE d.task_id = t.id) AS waits,
    EXISTS (SELECT 1 FROM attempt_work w WHERE w.task_id = t.id) AS supervised,
    EXISTS (SELECT 1 FROM attempt_checks c WHERE c.task_id = t.id) AS has_checks
FROM tasks t
JOIN task_status s ON s.task_id = t.id
LEFT JOIN agents a ON a.id = s.assigned_agent_id
LEFT JOIN agents r ON r.id = s.reserved_for
WHERE t.id = :id;

-- name: get_line
{{line}}
WHERE t.id = :id;

-- name: get_lines
{{line}}
WHERE CAST(:ids AS TEXT) <> '[]' AND t.id IN (SELECT CAST(n.value AS {{big}}) FROM {{rows_of ids}} AS n);

-- name: dependencies
SELECT d.depends_on, s.status FROM task_dependencies d
JOIN task_status s ON s.task_id = d.depends_on
WHERE d.task_id = :task_id ORDER BY d.depends_on;

-- part: holding
-- What keeps the task `a.of` from being claimed: the dependencies `d` of it and of the open tasks above it that are not
-- met. A task above it that waits for one of its own subtasks does not hold back the others.
FROM above a
JOIN task_dependencies d ON d.task_id = a.id
JOIN task_status s ON s.task_id = d.depends_on
JOIN tasks o ON o.id = a.id
JOIN task_status p ON p.task_id = a.id
WHERE s.status <> 'completed' AND NOT (o.on_failure = 'ignore' AND s.status IN ('failed', 'cancelled'))
  AND (a.id = a.of OR p.status IN ('pending', 'claimed', 'in_progress') AND NOT EXISTS (
    WITH RECURSIVE over (id) AS (
        SELECT d.depends_on
        UNION ALL
        SELECT t.parent_id FROM over r JOIN tasks t ON t.id = r.id WHERE t.parent_id IS NOT NULL
    ) SELECT 1 FROM over WHERE over.id = a.id))

-- name: blockers
WITH RECURSIVE above (id, of) AS (
    SELECT CAST(:task_id AS {{big}}), CAST(:task_id AS {{big}})
    UNION ALL
    SELECT t.parent_id, a.of FROM above a JOIN tasks t ON t.id = a.id WHERE t.parent_id IS NOT NULL
)
SELECT DISTINCT d.depends_on, s.status {{holding}}
ORDER BY d.depends_on;

-- name: recount
-- Of a task and of all below it.
WITH RECURSIVE below (id) AS (
    SELECT CAST(:task_id AS {{big}})
    UNION ALL
    SELECT t.id FROM below b JOIN tasks t ON t.parent_id = b.id
)
UPDATE task_status SET unmet = (
    WITH RECURSIVE above (id, of) AS (
        SELECT task_status.task_id, task_status.task_id
        UNION ALL
        SELECT t.parent_id, a.of FROM above a JOIN tasks t ON t.id = a.id WHERE t.parent_id IS NOT NULL
    )
    SELECT COUNT(DISTINCT d.depends_on) {{holding}}
) + CASE WHEN approval_id IS NULL THEN 0 ELSE 1 END WHERE task_id IN (SELECT id FROM below);

-- name: attempts
SELECT x.attempt, a.assigned_agent_id AS agent_id, x.claimed_at, x.started_at, x.ended_at, x.outcome,
    x.error_class, x.error_message, x.definition_id, x.definition_hash, x.prompt_hash, x.include, x.profile, x.input_tokens, x.output_tokens, x.cost_usd, x.leased, w.worktree, w.base_commit, w.waits_for,
    w.requested_end, w.state, w.kept_commit, w.commits, w.files,
    w.bytes, w.problem, c.state AS check_state, c.commit_hash AS check_commit, c.tries AS check_tries,
    c.exit_code AS check_exit_code, c.started_at AS check_started_at, c.ended_at AS check_ended_at,
    c.output AS check_output, c.metrics AS check_metrics
FROM task_attempts x JOIN agents a ON a.id = x.agent_id
LEFT JOIN attempt_work w ON w.task_id = x.task_id AND w.attempt = x.attempt
LEFT JOIN attempt_checks c ON c.task_id = x.task_id AND c.attempt = x.attempt
WHERE x.task_id = :task_id ORDER BY x.attempt;

-- name: reserve
UPDATE task_status SET reserved_for = CAST(:agent AS TEXT) WHERE task_id = :task_id;

-- name: attempt_with_token
SELECT w.agent_id, w.attempt FROM attempt_work w
JOIN task_attempts x ON x.task_id = w.task_id AND x.attempt = w.attempt
WHERE w.task_id = :task_id AND x.ended_at IS NULL AND w.token_hash IS NOT NULL;

-- name: end_attempt
UPDATE task_attempts SET ended_at = :now, outcome = :outcome, error_message = :error, error_class = :error_class,
    started_at = CASE WHEN :outcome = 'completed' THEN COALESCE(started_at, :now) ELSE started_at END
WHERE task_id = :task_id AND ended_at IS NULL;

-- name: logs
SELECT l.id, l.task_id, a.assigned_agent_id AS agent_id, l.level, l.message, l.logged_at
FROM task_logs l JOIN agents a ON a.id = l.agent_id
WHERE l.task_id = :task_id AND l.id > :cursor ORDER BY l.id LIMIT :limit;

-- name: logs_back
SELECT l.id, l.task_id, a.assigned_agent_id AS agent_id, l.level, l.message, l.logged_at
FROM task_logs l JOIN agents a ON a.id = l.agent_id
WHERE l.task_id = :task_id AND l.id < :cursor ORDER BY l.id DESC LIMIT :limit;

-- name: is_own
WITH RECURSIVE above (id) AS (
    SELECT CAST(:task_id AS {{big}})
    UNION ALL
    SELECT t.parent_id FROM tasks t JOIN above a ON t.id = a.id WHERE t.parent_id IS NOT NULL
), {{crew}}
SELECT 1 AS found FROM above a
JOIN tasks t ON t.id = a.id
JOIN task_status s ON s.task_id = a.id
WHERE (s.assigned_agent_id = :agent AND s.status IN ('claimed', 'in_progress')) OR t.created_by IN ({{names}})
LIMIT 1;

-- name: is_own_name
WITH RECURSIVE {{crew}}
SELECT 1 AS found FROM ({{names}}) AS own WHERE own.name = :name LIMIT 1;

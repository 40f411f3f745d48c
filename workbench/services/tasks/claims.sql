-- part: fits
-- An agent without a model does tasks with a command only; nobody begins one whose budget, that of a task above it or of
-- its plan is used up, whose needs cannot be met (`waiting`: only those), or beside a task that is alone, but for what is
-- part of that. Tasks in worktrees are done on the machine that has the worktree (`machine`; null: there is one).
(CAST(:machine AS TEXT) IS NULL OR worktree = ''
        OR NOT EXISTS (SELECT 1 FROM worktrees h WHERE h.name = worktree AND h.machine <> :machine))
    AND (CAST(:unmet AS TEXT) = '[]' OR (CAST(:waiting AS {{big}}) = 1) = (COALESCE(needs,
        (SELECT p.needs FROM personas p WHERE p.id = persona_id), '') IN (SELECT n.value FROM {{rows_of unmet}} AS n)))
    AND (CAST(:commands AS {{big}}) = 0 OR EXISTS (SELECT 1 FROM tasks t WHERE t.id = task_id AND t.run IS NOT NULL))
    AND NOT EXISTS (SELECT 1 FROM budgets b WHERE b.used_up <> '' AND (b.scope = 'plan:' || (SELECT p.plan FROM tasks p WHERE p.id = task_id)
        OR b.scope IN (
            WITH RECURSIVE up (id, parent_id) AS (
                SELECT o.id, o.parent_id FROM tasks o WHERE o.id = task_id
                UNION SELECT o.id, o.parent_id FROM tasks o JOIN up u ON o.id = u.parent_id)
            SELECT 'task:' || CAST(up.id AS TEXT) FROM up)))
    AND (CAST(:alone AS {{big}}) = 0 OR EXISTS (
        WITH RECURSIVE up (id, parent_id) AS (
            SELECT o.id, o.parent_id FROM tasks o WHERE o.id = task_id
            UNION SELECT o.id, o.parent_id FROM tasks o JOIN up u ON o.id = u.parent_id)
        SELECT 1 FROM up WHERE up.id = CAST(:alone AS {{big}})))

-- name: candidates
-- One index probe each: reserved for the agent; in its worktree or in none, of its session or of none.
SELECT task_id FROM (
    SELECT * FROM (
        SELECT 0 AS rank, priority, task_id FROM task_status
        WHERE reserved_for = :agent AND reserved_for IS NOT NULL AND session_id IN ('', :session)
          AND status = 'pending' AND unmet = 0 AND not_before IS NULL AND {{fits}}
        ORDER BY priority DESC, task_id LIMIT :limit) AS reserved
    UNION ALL
    SELECT * FROM (
        SELECT 1 AS rank, priority, task_id FROM task_status
        WHERE persona_id = :persona AND worktree = :worktree AND session_id = :session
          AND status = 'pending' AND unmet = 0 AND not_before IS NULL AND reserved_for IS NULL AND {{fits}}
        ORDER BY priority DESC, task_id LIMIT :limit) AS here
    UNION ALL
    SELECT * FROM (
        SELECT 1 AS rank, priority, task_id FROM task_status
        WHERE persona_id = :persona AND worktree = '' AND session_id = :session AND :worktree <> ''
          AND status = 'pending' AND unmet = 0 AND not_before IS NULL AND reserved_for IS NULL AND {{fits}}
        ORDER BY priority DESC, task_id LIMIT :limit) AS of_my_session
    UNION ALL
    SELECT * FROM (
        SELECT 1 AS rank, priority, task_id FROM task_status
        WHERE persona_id = :persona AND worktree = :worktree AND session_id = '' AND :session <> ''
          AND status = 'pending' AND unmet = 0 AND not_before IS NULL AND reserved_for IS NULL AND {{fits}}
        ORDER BY priority DESC, task_id LIMIT :limit) AS in_my_worktree
    UNION ALL
    SELECT * FROM (
        SELECT 1 AS rank, priority, task_id FROM task_status
        WHERE persona_id = :persona AND worktree = '' AND session_id = '' AND :worktree <> '' AND :session <> ''
          AND status = 'pending' AND unmet = 0 AND not_before IS NULL AND reserved_for IS NULL AND {{fits}}
        ORDER BY priority DESC, task_id LIMIT :limit) AS anywhere
) AS found
ORDER BY rank, priority DESC, task_id LIMIT :limit;

-- name: machine_of
SELECT machine FROM worktrees WHERE name = :worktree;

-- name: deleted_session
SELECT s.name FROM sessions s JOIN projects p ON p.id = s.project_id
WHERE s.id = :id AND COALESCE(s.deleted_at, p.deleted_at) IS NOT NULL;

-- name: claim
UPDATE task_status SET status = 'claimed', assigned_agent_id = :agent, claimed_at = :now,
    lease_expires_at = :now + (SELECT lease_us FROM tasks WHERE id = :task_id),
    attempt = attempt + 1, started_at = NULL, progress = 0
WHERE task_id = :task_id AND status = 'pending' AND unmet = 0 AND not_before IS NULL;

-- name: add_attempt
INSERT INTO task_attempts (task_id, attempt, agent_id, claimed_at, definition_id, definition_hash, prompt_hash, include,
    profile, plan, session_id, persona_id, run_id, machine)
SELECT CAST(:task_id AS {{big}}), CAST(:attempt AS {{big}}), a.id, CAST(:now AS {{big}}), a.definition_id, a.definition_hash,
    a.prompt_hash, a.include, p.profile, CAST(:plan AS TEXT), CAST(:session_id AS TEXT), CAST(:persona_id AS TEXT),
    CAST(:run_id AS {{big}}), CAST(:machine AS TEXT)
FROM agents a LEFT JOIN agent_programs p ON p.agent_id = a.id WHERE a.id = :agent;

-- name: renew
UPDATE task_status SET lease_expires_at = :now + (SELECT lease_us FROM tasks WHERE id = task_id)
WHERE assigned_agent_id = :agent AND status IN ('claimed', 'in_progress');

-- name: beat
UPDATE agents SET last_heartbeat = :now WHERE id = :agent;

-- name: renew
UPDATE task_status SET lease_expires_at = :now + (SELECT lease_us FROM tasks WHERE id = task_id)
WHERE assigned_agent_id = :agent AND status IN ('claimed', 'in_progress');

-- name: beat
UPDATE agents SET last_heartbeat = :now WHERE id = :agent;

-- name: held_by
SELECT s.task_id AS id, s.status, s.attempt, s.retry_count, s.lease_expires_at, t.max_retries, t.lease_us,
    t.no_retry, t.session_id
FROM task_status s JOIN tasks t ON t.id = s.task_id
WHERE s.assigned_agent_id = :agent AND s.status IN ('claimed', 'in_progress')
ORDER BY CASE s.status WHEN 'in_progress' THEN 0 ELSE 1 END, s.task_id;

-- name: reserved_for
SELECT s.task_id AS id, t.session_id FROM task_status s JOIN tasks t ON t.id = s.task_id
WHERE s.reserved_for = :agent AND s.status IN ('pending', 'claimed', 'in_progress') ORDER BY s.task_id;

-- name: candidates
-- One index probe each: reserved for me; mine here or in no worktree, of my session or of none.
SELECT task_id FROM (
    SELECT * FROM (
        SELECT 0 AS rank, priority, task_id FROM task_status
        WHERE reserved_for = :agent AND reserved_for IS NOT NULL AND session_id IN ('', :session)
          AND status = 'pending' AND unmet = 0 AND not_before IS NULL
        ORDER BY priority DESC, task_id LIMIT :limit) AS reserved
    UNION ALL
    SELECT * FROM (
        SELECT 1 AS rank, priority, task_id FROM task_status
        WHERE persona_id = :persona AND worktree = :worktree AND session_id = :session
          AND status = 'pending' AND unmet = 0 AND not_before IS NULL AND reserved_for IS NULL
        ORDER BY priority DESC, task_id LIMIT :limit) AS here
    UNION ALL
    SELECT * FROM (
        SELECT 1 AS rank, priority, task_id FROM task_status
        WHERE persona_id = :persona AND worktree = '' AND session_id = :session AND :worktree <> ''
          AND status = 'pending' AND unmet = 0 AND not_before IS NULL AND reserved_for IS NULL
        ORDER BY priority DESC, task_id LIMIT :limit) AS of_my_session
    UNION ALL
    SELECT * FROM (
        SELECT 1 AS rank, priority, task_id FROM task_status
        WHERE persona_id = :persona AND worktree = :worktree AND session_id = '' AND :session <> ''
          AND status = 'pending' AND unmet = 0 AND not_before IS NULL AND reserved_for IS NULL
        ORDER BY priority DESC, task_id LIMIT :limit) AS in_my_worktree
    UNION ALL
    SELECT * FROM (
        SELECT 1 AS rank, priority, task_id FROM task_status
        WHERE persona_id = :persona AND worktree = '' AND session_id = '' AND :worktree <> '' AND :session <> ''
          AND status = 'pending' AND unmet = 0 AND not_before IS NULL AND reserved_for IS NULL
        ORDER BY priority DESC, task_id LIMIT :limit) AS anywhere
) AS found
ORDER BY rank, priority DESC, task_id LIMIT :limit;

-- name: claim
UPDATE task_status SET status = 'claimed', assigned_agent_id = :agent, claimed_at = :now,
    lease_expires_at = :now + (SELECT lease_us FROM tasks WHERE id = :task_id),
    attempt = attempt + 1, started_at = NULL, progress = 0
WHERE task_id = :task_id AND status = 'pending' AND unmet = 0 AND not_before IS NULL;

-- name: add_attempt
INSERT INTO task_attempts (task_id, attempt, agent_id, claimed_at)
VALUES (:task_id, :attempt, :agent, :now);

-- name: start
UPDATE task_status SET status = 'in_progress', started_at = :now WHERE task_id = :task_id;

-- name: start_attempt
UPDATE task_attempts SET started_at = :now WHERE task_id = :task_id AND attempt = :attempt;

-- name: progress
UPDATE task_status SET progress = :progress, lease_expires_at = :now + CAST(:lease_us AS {{big}})
WHERE task_id = :task_id;

-- name: log
INSERT INTO task_logs (task_id, agent_id, level, message, logged_at)
VALUES (:task_id, :agent, :level, :message, :now);

-- name: complete
UPDATE task_status SET status = 'completed', progress = 100, completed_at = :now,
    started_at = COALESCE(started_at, :now), lease_expires_at = NULL, result_data = :result,
    artifacts = :artifacts, error_message = NULL
WHERE task_id = :task_id;

-- name: complete_attempt
UPDATE task_attempts SET started_at = COALESCE(started_at, :now), ended_at = :now, outcome = 'completed'
WHERE task_id = :task_id AND attempt = :attempt;

-- name: put_back
UPDATE task_status SET status = 'pending', assigned_agent_id = NULL, lease_expires_at = NULL,
    not_before = CAST(:not_before AS {{big}}), retry_count = retry_count + CAST(:retries AS {{big}}),
    progress = 0, error_message = :error
WHERE task_id = :task_id;

-- name: give_up
UPDATE task_status SET status = 'failed', completed_at = :now, lease_expires_at = NULL,
    error_message = :error
WHERE task_id = :task_id;

-- name: expired
SELECT s.task_id AS id, s.status, s.attempt, s.retry_count, s.lease_expires_at, t.max_retries, t.lease_us,
    t.no_retry, t.session_id
FROM task_status s JOIN tasks t ON t.id = s.task_id
WHERE s.lease_expires_at IS NOT NULL AND s.lease_expires_at <= :now
ORDER BY s.lease_expires_at LIMIT 1000;

-- name: is_held
SELECT 1 AS found FROM task_status WHERE task_id = :task_id AND status IN ('claimed', 'in_progress');

-- name: rested
SELECT task_id, session_id FROM task_status WHERE not_before IS NOT NULL AND not_before <= :now LIMIT 1000;

-- name: wake
UPDATE task_status SET not_before = NULL WHERE task_id = :task_id;

-- name: next_deadline
SELECT MIN(at) AS at FROM (
    SELECT MIN(lease_expires_at) AS at FROM task_status WHERE lease_expires_at IS NOT NULL
    UNION ALL
    SELECT MIN(not_before) AS at FROM task_status WHERE not_before IS NOT NULL
) AS deadlines;

-- name: mend_leases
UPDATE task_status SET lease_expires_at = :now + (SELECT lease_us FROM tasks WHERE id = task_id)
WHERE lease_expires_at IS NOT NULL;

-- name: mend_pauses
UPDATE task_status SET not_before = :now WHERE not_before IS NOT NULL;

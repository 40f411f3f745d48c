-- part: is_checked
-- Whether the agent of the task `s` has completed it, and a check decides.
EXISTS (SELECT 1 FROM attempt_checks c WHERE c.task_id = s.task_id AND c.attempt = s.attempt AND c.ending IS NOT NULL
    AND c.state IN ('waiting', 'running'))

-- name: held_by
SELECT s.task_id AS id, s.status, s.attempt, s.retry_count, s.lease_expires_at, t.max_retries, t.lease_us,
    t.no_retry, t.session_id, w.requested_end, {{is_checked}} AS is_checked
FROM task_status s JOIN tasks t ON t.id = s.task_id
LEFT JOIN attempt_work w ON w.task_id = s.task_id AND w.attempt = s.attempt
WHERE s.assigned_agent_id = :agent AND s.status IN ('claimed', 'in_progress')
ORDER BY CASE s.status WHEN 'in_progress' THEN 0 ELSE 1 END, s.task_id;

-- name: reserved_for
SELECT s.task_id AS id, t.session_id FROM task_status s JOIN tasks t ON t.id = s.task_id
WHERE s.reserved_for = :agent AND s.status IN ('pending', 'claimed', 'in_progress') ORDER BY s.task_id;

-- name: put_back
UPDATE task_status SET status = 'pending', assigned_agent_id = NULL, lease_expires_at = NULL,
    not_before = CAST(:not_before AS {{big}}), retry_count = retry_count + CAST(:retries AS {{big}}),
    progress = 0, error_message = :error
WHERE task_id = :task_id;

-- name: give_up
UPDATE task_status SET status = 'failed', completed_at = :now, lease_expires_at = NULL,
    error_message = :error
WHERE task_id = :task_id;

-- part: work
SELECT w.*, x.ended_at, x.outcome, x.machine, a.assigned_agent_id AS agent, s.lease_expires_at
FROM attempt_work w
JOIN task_attempts x ON x.task_id = w.task_id AND x.attempt = w.attempt
JOIN task_status s ON s.task_id = w.task_id
JOIN agents a ON a.id = w.agent_id

-- name: last_machine
-- The machine of the last attempt at a task.
SELECT machine FROM task_attempts WHERE task_id = :task_id ORDER BY attempt DESC LIMIT 1;

-- name: add_work
INSERT INTO attempt_work (task_id, attempt, agent_id, key_hash, state)
VALUES (:task_id, :attempt, :agent, :key_hash, 'waiting') ON CONFLICT (task_id, attempt) DO NOTHING;

-- name: get_work
{{work}}
WHERE w.task_id = :task_id AND w.attempt = :attempt;

-- name: is_elsewhere
SELECT 1 AS found FROM machine_workers WHERE agent_id = CAST(:agent AS TEXT);

-- name: open_in
{{work}}
WHERE w.worktree = :worktree AND w.state = 'open' ORDER BY w.task_id, w.attempt;

-- name: ended_work
-- Ended attempts whose work is not yet put away; those with a problem are tried again after a pause.
{{work}}
WHERE w.worktree IS NOT NULL AND w.state = 'open' AND x.ended_at IS NOT NULL
  AND (CAST(:machine AS TEXT) IS NULL OR x.machine = :machine)
  AND (w.tried_at IS NULL OR w.tried_at <= :tried_before)
ORDER BY w.task_id, w.attempt LIMIT 100;

-- name: wait
UPDATE attempt_work SET waits_for = :reason
WHERE task_id = :task_id AND attempt = :attempt AND state = 'waiting' AND (waits_for IS NULL OR waits_for <> :reason);

-- name: open_work
UPDATE attempt_work SET state = 'open', waits_for = NULL, worktree = :worktree, base_commit = :commit
WHERE task_id = :task_id AND attempt = :attempt AND state = 'waiting';

-- name: set_token
UPDATE attempt_work SET token_hash = :token_hash WHERE task_id = :task_id AND attempt = :attempt;

-- name: request_end
UPDATE attempt_work SET requested_end = :ending WHERE task_id = :task_id AND attempt = :attempt AND state <> 'over';

-- name: keep_work
UPDATE attempt_work SET kept_commit = :commit, commits = :commits, files = :files, bytes = :bytes
WHERE task_id = :task_id AND attempt = :attempt;

-- name: failed_to_keep
UPDATE attempt_work SET problem = :problem, tried_at = :now WHERE task_id = :task_id AND attempt = :attempt;

-- name: close_work
UPDATE attempt_work SET state = 'over', over_at = :now, waits_for = NULL, problem = :problem
WHERE task_id = :task_id AND attempt = :attempt AND state <> 'over';

-- name: kept
SELECT w.task_id, w.attempt, w.kept_commit, w.bytes, w.over_at FROM attempt_work w
JOIN task_attempts x ON x.task_id = w.task_id AND x.attempt = w.attempt
WHERE w.kept_commit IS NOT NULL AND w.state = 'over' AND (CAST(:machine AS TEXT) IS NULL OR x.machine = :machine)
ORDER BY w.over_at, w.task_id, w.attempt;

-- name: forget
UPDATE attempt_work SET kept_commit = NULL, problem = 'What it made was pruned.'
WHERE task_id = :task_id AND attempt = :attempt AND kept_commit IS NOT NULL;

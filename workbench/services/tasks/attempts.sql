-- name: held_by
SELECT s.task_id AS id, s.status, s.attempt, s.retry_count, s.lease_expires_at, t.max_retries, t.lease_us,
    t.no_retry, t.session_id
FROM task_status s JOIN tasks t ON t.id = s.task_id
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

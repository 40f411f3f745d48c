-- part: may_end
-- Not the lease of a task that its agent has completed and that is being checked, or that waits for a person's answer.
(CAST(:serving AS {{big}}) = 1 OR NOT EXISTS (
    SELECT 1 FROM processes p WHERE p.agent_id = s.assigned_agent_id AND p.ended_at IS NULL AND p.reason IS NULL))
AND NOT EXISTS (SELECT 1 FROM attempt_checks c WHERE c.task_id = s.task_id AND c.attempt = s.attempt
    AND c.ending IS NOT NULL AND c.state IN ('waiting', 'running'))
AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.task_id = s.task_id AND m.attempt = s.attempt AND m.kind = 'question'
    AND m.acted_at IS NULL)

-- name: expired
SELECT s.task_id AS id, s.status, s.attempt, s.retry_count, s.lease_expires_at, t.max_retries, t.lease_us,
    t.no_retry, t.session_id, s.assigned_agent_id
FROM task_status s JOIN tasks t ON t.id = s.task_id
WHERE s.lease_expires_at IS NOT NULL AND s.lease_expires_at <= :now
  AND {{may_end}}
ORDER BY s.lease_expires_at LIMIT 1000;

-- name: is_held
SELECT 1 AS found FROM task_status WHERE task_id = :task_id AND status IN ('claimed', 'in_progress');

-- name: rested
SELECT task_id, session_id FROM task_status WHERE not_before IS NOT NULL AND not_before <= :now LIMIT 1000;

-- name: wake
UPDATE task_status SET not_before = NULL WHERE task_id = :task_id;

-- name: next_deadline
SELECT MIN(at) AS at FROM (
    SELECT MIN(s.lease_expires_at) AS at FROM task_status s WHERE s.lease_expires_at IS NOT NULL
      AND {{may_end}}
    UNION ALL
    SELECT MIN(not_before) AS at FROM task_status WHERE not_before IS NOT NULL
) AS deadlines;

-- name: mend_leases
UPDATE task_status SET lease_expires_at = :now + (SELECT lease_us FROM tasks WHERE id = task_id)
WHERE lease_expires_at IS NOT NULL;

-- name: mend_pauses
UPDATE task_status SET not_before = :now WHERE not_before IS NOT NULL;

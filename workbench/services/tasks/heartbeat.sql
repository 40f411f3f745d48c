-- name: renew
UPDATE task_status SET lease_expires_at = :now + (SELECT lease_us FROM tasks WHERE id = task_id)
WHERE assigned_agent_id = :agent AND status IN ('claimed', 'in_progress');

-- name: beat
UPDATE agents SET last_heartbeat = :now WHERE id = :agent;

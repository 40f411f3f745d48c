-- name: enqueue
UPDATE integrations SET state = 'queued', despite_gates = :despite, queued_at = :now WHERE approval_id = :id;

-- name: queue
SELECT approval_id FROM integrations WHERE state = 'queued' ORDER BY queued_at, approval_id;

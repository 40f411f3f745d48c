-- name: oldest_claim
SELECT min(claimed_at) AS claimed_at FROM task_status WHERE status IN ('claimed', 'in_progress');

-- name: oldest_start
SELECT min(started_at) AS started_at FROM task_status WHERE status IN ('claimed', 'in_progress');

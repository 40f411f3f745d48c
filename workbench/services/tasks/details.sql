-- name: logs
SELECT l.id, l.task_id, a.assigned_agent_id AS agent_id, l.level, l.message, l.logged_at
FROM task_logs l JOIN agents a ON a.id = l.agent_id
WHERE l.task_id = :task_id AND l.id > :cursor ORDER BY l.id LIMIT :limit;

-- name: logs_back
SELECT l.id, l.task_id, a.assigned_agent_id AS agent_id, l.level, l.message, l.logged_at
FROM task_logs l JOIN agents a ON a.id = l.agent_id
WHERE l.task_id = :task_id AND l.id < :cursor ORDER BY l.id DESC LIMIT :limit;

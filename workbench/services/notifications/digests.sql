-- name: list
SELECT n.id, n.at, n.sentence, n.items, n.left_out, c.state AS command, w.state AS webhook,
    COALESCE(w.error_code, c.error_code) AS error_code, COALESCE(w.error, c.error) AS error
FROM notifications n
LEFT JOIN notification_deliveries c ON c.notification_id = n.id AND c.channel = 'command'
LEFT JOIN notification_deliveries w ON w.notification_id = n.id AND w.channel = 'webhook'
ORDER BY n.id DESC LIMIT :limit;

-- name: first
SELECT at FROM events
WHERE id > (SELECT event_id FROM notification_cursor) AND kind IN (SELECT k.value FROM {{rows_of kinds}} AS k)
ORDER BY id LIMIT 1;

-- name: place
SELECT event_id AS cursor, (SELECT COALESCE(MAX(id), 0) FROM events) AS newest FROM notification_cursor;

-- name: events
SELECT id, at, kind, actor, subject, session, data FROM events
WHERE id > (SELECT event_id FROM notification_cursor) AND kind IN (SELECT k.value FROM {{rows_of kinds}} AS k)
ORDER BY id;

-- name: advance
UPDATE notification_cursor SET event_id = (SELECT COALESCE(MAX(id), 0) FROM events);

-- name: add
INSERT INTO notifications (at, sentence, items, left_out, shown_at)
VALUES (:now, :sentence, :items, :left_out, CAST(:shown AS {{big}})) RETURNING id;

-- name: unshown
SELECT id, items, left_out FROM notifications WHERE shown_at IS NULL ORDER BY id;

-- name: show
UPDATE notifications SET shown_at = :now WHERE shown_at IS NULL;

-- name: deliver
INSERT INTO notification_deliveries (notification_id, channel, state, not_before)
VALUES (:id, :channel, 'waiting', :now);

-- name: question
SELECT id, status, kind, subject, payload FROM approvals WHERE id = :id;

-- name: task
SELECT t.id, t.title, k.status FROM tasks t JOIN task_status k ON k.task_id = t.id WHERE t.id = :id;

-- name: silent
SELECT s.task_id, COALESCE(a.assigned_agent_id, a.name) AS name
FROM silent_agents s JOIN agents a ON a.id = s.agent_id WHERE s.agent_id = CAST(:agent AS TEXT);

-- name: plan
SELECT t.plan, COUNT(*) AS tasks,
    SUM(CASE WHEN k.status = 'completed' THEN 1 ELSE 0 END) AS completed,
    SUM(CASE WHEN k.status IN ('completed', 'cancelled') THEN 0 ELSE 1 END) AS open
FROM tasks t JOIN task_status k ON k.task_id = t.id
WHERE t.plan = (SELECT plan FROM tasks WHERE id = :id) GROUP BY t.plan;

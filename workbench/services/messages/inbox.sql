-- part: messages
SELECT m.id, m.kind, m.sender, a.assigned_agent_id AS agent_id, m.task_id, m.attempt, m.body AS text, m.approval_id,
    m.interrupts, m.sent_at, m.seen_at, m.acted_at
FROM messages m LEFT JOIN agents a ON a.id = m.agent_id

-- name: add
INSERT INTO messages (kind, sender_id, sender, agent_id, task_id, attempt, body, approval_id, interrupts, sent_at)
VALUES (:kind, :sender_id, :sender, :agent, :task_id, :attempt, :body, :approval_id, :interrupts, :now)
RETURNING id;

-- name: get
{{messages}}
WHERE m.id = :id;

-- name: list
{{messages}}
WHERE m.id < :before
  AND (CAST(:agent AS TEXT) IS NULL OR m.agent_id = :agent OR m.sender_id = :agent)
  AND (CAST(:task_id AS {{big}}) IS NULL OR m.task_id = :task_id)
ORDER BY m.id DESC LIMIT :limit;

-- name: queued
{{messages}}
WHERE m.agent_id = :agent AND m.id > :after AND m.seen_at IS NULL AND m.acted_at IS NULL
ORDER BY m.id LIMIT :limit;

-- name: open
{{messages}}
WHERE m.agent_id = :agent AND m.seen_at IS NOT NULL AND m.acted_at IS NULL
ORDER BY m.id LIMIT :limit;

-- name: of_assignment
-- The newest.
{{messages}}
WHERE m.task_id = :task_id AND m.kind = 'comment' OR m.agent_id = :agent AND m.seen_at IS NOT NULL AND m.acted_at IS NULL
ORDER BY m.id DESC LIMIT :limit;

-- name: take_comments
UPDATE messages SET agent_id = :agent WHERE task_id = :task_id AND kind = 'comment' AND acted_at IS NULL;

-- name: see
UPDATE messages SET seen_at = :now WHERE id = :id AND seen_at IS NULL;

-- name: act
UPDATE messages SET acted_at = :now, seen_at = COALESCE(seen_at, :now)
WHERE id = :id AND agent_id = :agent AND acted_at IS NULL
RETURNING id;

-- name: act_on_seen
UPDATE messages SET acted_at = :now WHERE agent_id = :agent AND seen_at IS NOT NULL AND acted_at IS NULL
RETURNING id;

-- name: count_open
SELECT COUNT(*) AS n FROM messages WHERE agent_id = :agent AND acted_at IS NULL;

-- name: sent_since
SELECT COUNT(*) AS n FROM messages WHERE sender_id = :agent AND sent_at > :since;

-- name: task
SELECT t.id, CASE WHEN s.status IN ('claimed', 'in_progress') THEN s.assigned_agent_id END AS holder
FROM tasks t JOIN task_status s ON s.task_id = t.id WHERE t.id = :id;

-- name: has_ended
SELECT 1 AS found FROM processes WHERE agent_id = :agent AND ended_at IS NOT NULL;

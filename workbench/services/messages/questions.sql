-- part: is_over
-- Whether the attempt of the question `m`, or the agent that asked it, has ended.
(m.task_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM task_status s WHERE s.task_id = m.task_id AND s.attempt = m.attempt
    AND s.assigned_agent_id = m.sender_id AND s.status IN ('claimed', 'in_progress'))
 OR EXISTS (SELECT 1 FROM agents a WHERE a.id = m.sender_id
    AND (a.deleted_at IS NOT NULL OR a.registration_status IN ('rejected', 'revoked')))
 OR EXISTS (SELECT 1 FROM processes p WHERE p.agent_id = m.sender_id AND p.ended_at IS NOT NULL))

-- name: count_open
SELECT COUNT(*) AS n FROM messages WHERE sender_id = :agent AND kind = 'question' AND acted_at IS NULL;

-- name: held
SELECT task_id, attempt FROM task_status WHERE assigned_agent_id = :agent AND status IN ('claimed', 'in_progress')
ORDER BY CASE status WHEN 'in_progress' THEN 0 ELSE 1 END, task_id LIMIT 1;

-- name: close
UPDATE messages SET acted_at = :now, seen_at = COALESCE(seen_at, :now)
WHERE approval_id = :approval_id AND kind = 'question' AND acted_at IS NULL
RETURNING id, body, sender_id, task_id, attempt;

-- name: answer_to
SELECT id FROM messages WHERE approval_id = :approval_id AND kind = 'answer';

-- name: over
SELECT 1 AS found FROM messages m WHERE m.approval_id = :approval_id AND m.kind = 'question' AND {{is_over}};

-- name: due
SELECT m.approval_id, CASE WHEN {{is_over}} THEN 1 ELSE 0 END AS is_over FROM messages m
WHERE m.kind = 'question' AND m.acted_at IS NULL AND (m.sent_at <= :before OR {{is_over}});

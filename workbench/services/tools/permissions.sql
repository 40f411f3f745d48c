-- name: of_tool
SELECT permission, fingerprint, offer FROM tool_permissions WHERE tool = :tool AND offered_by IN ('', :offerer)
ORDER BY offered_by DESC LIMIT 1;

-- name: forbidden
SELECT tool, offered_by, permission FROM tool_permissions
WHERE tool IN (SELECT n.tool FROM tool_permissions n WHERE n.permission = :never);

-- name: list
SELECT tool, offered_by, offerer_name, permission, fingerprint, offer, decided_by, decided_at FROM tool_permissions
ORDER BY tool, offered_by;

-- name: set
INSERT INTO tool_permissions (tool, offered_by, offerer_name, permission, fingerprint, offer, decided_by, decided_at)
VALUES (:tool, :offerer, :name, :permission, :fingerprint, :offer, :by, :now)
ON CONFLICT (tool, offered_by) DO UPDATE SET offerer_name = excluded.offerer_name, permission = excluded.permission,
    fingerprint = excluded.fingerprint,
    offer = excluded.offer, decided_by = excluded.decided_by, decided_at = excluded.decided_at;

-- name: remove
DELETE FROM tool_permissions WHERE tool = :tool;

-- name: allowances
-- The task is the one that the agent has begun last.
SELECT arguments FROM tool_allowances
WHERE tool = :tool AND offered_by = :offerer AND fingerprint = :fingerprint
  AND (conversation_id IS NULL OR conversation_id = CAST(:conversation AS TEXT))
  AND (task_id IS NULL OR task_id = (SELECT s.task_id FROM task_status s
      WHERE s.assigned_agent_id = CAST(:agent AS TEXT) AND s.status IN ('claimed', 'in_progress')
      ORDER BY s.claimed_at DESC, s.task_id DESC LIMIT 1));

-- name: task_of
SELECT task_id AS task FROM task_status
WHERE assigned_agent_id = CAST(:agent AS TEXT) AND status IN ('claimed', 'in_progress')
ORDER BY claimed_at DESC, task_id DESC LIMIT 1;

-- name: add_allowance
INSERT INTO tool_allowances
    (tool, offered_by, offerer_name, fingerprint, offer, conversation_id, task_id, arguments, decided_by, decided_at)
VALUES (:tool, :offerer, :name, :fingerprint, :offer, CAST(:conversation AS TEXT), CAST(:task AS {{big}}),
    CAST(:arguments AS TEXT), :by, :now);

-- name: list_allowances
SELECT id, tool, offered_by, offerer_name, fingerprint, offer, conversation_id, task_id, arguments, decided_by,
    decided_at FROM tool_allowances ORDER BY tool, id;

-- name: remove_allowances
DELETE FROM tool_allowances WHERE tool = :tool;

-- name: remove_allowances_of_conversation
DELETE FROM tool_allowances WHERE conversation_id = :conversation;

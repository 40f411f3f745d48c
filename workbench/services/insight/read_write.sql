-- name: agents
SELECT * FROM agents_seen a
WHERE a.deleted_at IS NULL
  AND (CAST(:status AS TEXT) IS NULL OR a.registration_status = :status)
  AND (CAST(:session AS TEXT) IS NULL OR a.session_id = :session)
  AND (CAST(:team AS TEXT) IS NULL OR a.team_id = :team)
  AND (CAST(:since AS {{big}}) IS NULL OR a.registered_at > :since OR a.last_heartbeat > :since)
  AND (CAST(:everything AS {{big}}) = 1 OR a.id = :me OR a.parent_agent_id = :me
       OR a.team_id = :my_team OR a.session_id = :my_session)
  AND (a.registered_at, a.id) > (CAST(:after_at AS {{big}}), CAST(:after_id AS TEXT))
ORDER BY a.registered_at, a.id LIMIT :limit;

-- name: tasks
SELECT t.id, t.title, t.parent_id, t.plan, t.name, t.session_id, s.status, s.persona_id, s.worktree, s.priority,
    s.unmet, s.progress, s.attempt, s.retry_count, s.not_before, s.error_message, h.assigned_agent_id AS holder
FROM task_status s
JOIN tasks t ON t.id = s.task_id
LEFT JOIN agents h ON h.id = s.assigned_agent_id
LEFT JOIN agents a ON a.id = COALESCE(s.assigned_agent_id, s.reserved_for)
WHERE s.task_id > :after
  AND (CAST(:everything AS {{big}}) = 1 OR a.id = :me OR a.team_id = :my_team)
  AND (CAST(:status AS TEXT) IS NULL OR s.status = :status)
  AND (CAST(:persona_id AS TEXT) IS NULL OR s.persona_id = :persona_id)
  AND (CAST(:since AS {{big}}) IS NULL OR t.created_at > :since OR s.claimed_at > :since
       OR s.started_at > :since OR s.completed_at > :since)
ORDER BY s.task_id LIMIT :limit;

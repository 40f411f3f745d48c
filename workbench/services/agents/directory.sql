-- part: visible
(CAST(:everything AS {{big}}) = 1 OR a.id = :me OR a.parent_agent_id = :me
       OR a.team_id = :my_team OR a.session_id = :my_session)

-- part: seen
SELECT a.*, (SELECT s.since FROM silent_agents s WHERE s.agent_id = a.id) AS silent_since,
    COALESCE((SELECT 'elsewhere:' || m.machine FROM machine_workers m WHERE m.agent_id = a.id),
        (SELECT p.machine FROM spawns p WHERE p.agent_id = a.id)) AS machine
FROM agents_seen a

-- part: wanted
(CAST(:status AS TEXT) IS NULL OR a.registration_status = :status)
  AND (CAST(:session AS TEXT) IS NULL OR a.session_id = :session)
  AND (CAST(:team AS TEXT) IS NULL OR a.team_id = :team)
  AND (CAST(:search AS TEXT) IS NULL OR LOWER(a.assigned_agent_id) LIKE LOWER(:search) ESCAPE '!'
       OR LOWER(a.name) LIKE LOWER(:search) ESCAPE '!' OR LOWER(a.persona_id) LIKE LOWER(:search) ESCAPE '!')
  AND (CAST(:since AS {{big}}) IS NULL OR a.registered_at > :since OR a.last_heartbeat > :since)
  AND (a.deleted_at IS NOT NULL) = (CAST(:deleted AS {{big}}) = 1)
  AND {{visible}}

-- name: list
{{seen}}
WHERE {{wanted}}
  AND (a.registered_at, a.id) > (CAST(:after_at AS {{big}}), CAST(:after_id AS TEXT))
ORDER BY a.registered_at, a.id LIMIT :limit;

-- name: count
SELECT COUNT(*) AS n FROM agents a
WHERE {{wanted}};

-- name: visible
{{seen}} WHERE a.assigned_agent_id = :agent_id AND a.deleted_at IS NULL
  AND {{visible}};

-- name: there
{{seen}}
WHERE a.registration_status IN ('assigned', 'active', 'inactive') AND a.deleted_at IS NULL
  AND (CAST(:persona AS TEXT) IS NULL OR a.persona_id = :persona)
  AND {{visible}}
ORDER BY a.registered_at, a.id;

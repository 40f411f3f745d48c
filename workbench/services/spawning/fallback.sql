-- part: held
-- Whether the account or the profile of `p` is held; a hold of one agent follows it to another profile.
EXISTS (SELECT 1 FROM holds h WHERE h.ended = 0 AND (h.until IS NULL OR h.until > :now)
    AND h.scope IN ('profile:' || p.profile, 'account:' || p.account))

-- name: idle
-- Agents that run and hold no task: those that are held, and those that work with another profile than their own.
SELECT a.id, a.assigned_agent_id AS name, a.session_id, p.profile, p.preferred, CASE WHEN {{held}} THEN 1 ELSE 0 END AS held
FROM agent_programs p JOIN agents a ON a.id = p.agent_id JOIN spawns s ON s.agent_id = a.id
JOIN processes x ON x.agent_id = a.id
WHERE s.state = 'started' AND (CAST(:machine AS TEXT) IS NULL OR s.machine = :machine) AND x.ended_at IS NULL AND x.reason IS NULL AND (p.preferred IS NOT NULL OR {{held}})
  AND NOT EXISTS (SELECT 1 FROM task_status k WHERE k.assigned_agent_id = a.id AND k.status IN ('claimed', 'in_progress'))
ORDER BY a.registered_at, a.id;

-- name: held_profiles
-- The profiles that are held, or whose account is: what an agent worked with before tells that, too.
SELECT DISTINCT p.profile FROM agent_programs p WHERE {{held}}
UNION SELECT substr(h.scope, 9) FROM holds h
WHERE h.ended = 0 AND (h.until IS NULL OR h.until > :now) AND substr(h.scope, 1, 8) = 'profile:'
UNION SELECT p.preferred FROM agent_programs p JOIN holds h ON h.scope = 'account:' || p.preferred_account
WHERE h.ended = 0 AND (h.until IS NULL OR h.until > :now);

-- name: profile
SELECT 1 FROM spawns WHERE agent_id = :agent AND profile = :profile;

-- name: change
UPDATE spawns SET profile = :profile WHERE agent_id = :agent;

-- name: prefer
UPDATE agent_programs SET preferred = CAST(:preferred AS TEXT),
    preferred_account = CASE WHEN CAST(:preferred AS TEXT) IS NULL THEN NULL
        ELSE COALESCE(preferred_account, account) END
WHERE agent_id = :agent;

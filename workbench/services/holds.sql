-- part: there
-- The agents that have not ended.
FROM agents a LEFT JOIN agent_programs p ON p.agent_id = a.id LEFT JOIN processes x ON x.agent_id = a.id
WHERE a.deleted_at IS NULL AND x.ended_at IS NULL

-- name: enlist
INSERT INTO agent_programs (agent_id, profile, account) VALUES (:agent, :profile, CAST(:account AS TEXT))
ON CONFLICT (agent_id) DO UPDATE SET profile = excluded.profile, account = excluded.account;

-- name: program
SELECT profile, account FROM agent_programs WHERE agent_id = :agent;

-- name: active
-- The holds that keep an agent from claiming: of its account, of its profile, its own. After one whose end was not known,
-- one agent tries first.
SELECT h.*, CASE WHEN h.ended = 1 OR h.until <= :now THEN 1 ELSE 0 END AS passed FROM holds h LEFT JOIN agent_programs p ON p.agent_id = CAST(:agent AS TEXT)
WHERE (h.scope = 'agent:' || CAST(:agent AS TEXT) OR h.scope = 'profile:' || p.profile OR h.scope = 'account:' || p.account)
  AND (h.ended = 0 AND (h.until IS NULL OR h.until > :now)
    OR (h.ended = 1 OR h.until <= :now) AND h.waits > 0 AND EXISTS (
        SELECT 1 FROM task_status k JOIN agent_programs q ON q.agent_id = k.assigned_agent_id
        WHERE k.status IN ('claimed', 'in_progress') AND k.claimed_at > :trying_since AND q.agent_id <> CAST(:agent AS TEXT)
          AND h.scope IN ('profile:' || q.profile, 'account:' || q.account)))
ORDER BY passed, CASE WHEN h.until IS NULL THEN 0 ELSE 1 END, h.until DESC, h.scope LIMIT 1;

-- name: get
SELECT * FROM holds WHERE scope = :scope;

-- name: list
SELECT h.*,
    (SELECT COUNT(*) {{there}}
       AND h.scope IN ('agent:' || a.id, 'profile:' || p.profile, 'account:' || p.account)) AS agents,
    (SELECT a.assigned_agent_id FROM agents a WHERE h.scope = 'agent:' || a.id) AS agent
FROM holds h WHERE h.ended = 0 ORDER BY h.since, h.scope;

-- name: put
INSERT INTO holds (scope, failure, reason, since, until, approval_id, waits, ended)
VALUES (:scope, :failure, :reason, :now, CAST(:until AS {{big}}), CAST(:approval AS {{big}}), CAST(:waits AS {{big}}), 0)
ON CONFLICT (scope) DO UPDATE SET failure = excluded.failure, reason = excluded.reason,
    since = CASE WHEN holds.ended = 1 OR holds.until <= excluded.since THEN excluded.since ELSE holds.since END,
    until = excluded.until, approval_id = excluded.approval_id, waits = excluded.waits, ended = 0;

-- name: due
SELECT scope FROM holds WHERE ended = 0 AND until IS NOT NULL AND until <= :now;

-- name: end
UPDATE holds SET ended = 1 WHERE scope = :scope AND ended = 0;

-- name: forget
DELETE FROM holds WHERE scope = :scope;

-- name: forget_ended
DELETE FROM holds WHERE scope = :scope AND ended = 1;

-- name: streak
SELECT signature, attempts FROM failure_streaks WHERE scope = :scope;

-- name: put_streak
INSERT INTO failure_streaks (scope, signature, attempts) VALUES (:scope, :signature, :attempts)
ON CONFLICT (scope) DO UPDATE SET signature = excluded.signature, attempts = excluded.attempts;

-- name: forget_streak
DELETE FROM failure_streaks WHERE scope = :scope;

-- name: agents_of
SELECT a.id, a.assigned_agent_id AS name {{there}}
  AND CAST(:scope AS TEXT) IN ('agent:' || a.id, 'profile:' || p.profile, 'account:' || p.account)
ORDER BY a.registered_at, a.id;

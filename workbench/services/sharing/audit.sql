-- name: newest
SELECT id, at, kind, actor, subject, session, data FROM events
WHERE subject = :subject AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: of_any_name
SELECT id FROM agents WHERE assigned_agent_id = :agent_id
UNION ALL
SELECT id FROM former_ids WHERE agent_id = :agent_id
LIMIT 1;

-- name: names
SELECT s.id, s.name FROM sessions s WHERE s.id IN (SELECT n.value FROM {{rows_of ids}} AS n)
UNION ALL
SELECT t.id, t.name FROM teams t WHERE t.id IN (SELECT n.value FROM {{rows_of ids}} AS n)
UNION ALL
SELECT d.id, d.name FROM definitions d WHERE d.id IN (SELECT n.value FROM {{rows_of ids}} AS n);

-- part: own
SELECT w.name, w.version, w.agent_id, w.definition_id, w.traits, a.assigned_agent_id, a.role, p.name AS persona, c.content
FROM own_personalities w
LEFT JOIN agents a ON a.id = w.agent_id
LEFT JOIN personas p ON p.id = a.persona_id
LEFT JOIN definitions d ON d.id = COALESCE(w.definition_id, a.definition_id) AND d.deleted_at IS NULL
LEFT JOIN definition_contents c ON c.hash = d.hash
WHERE (a.id IS NULL OR (a.deleted_at IS NULL AND a.registration_status NOT IN ('revoked', 'rejected')))

-- name: own
{{own}} ORDER BY w.name;

-- name: own_named
{{own}} AND w.name = :name;

-- name: names
SELECT name FROM own_personalities;

-- name: definitions
SELECT DISTINCT d.id, d.path FROM own_personalities w LEFT JOIN agents a ON a.id = w.agent_id
JOIN definitions d ON d.id = COALESCE(w.definition_id, a.definition_id) AND d.deleted_at IS NULL
ORDER BY d.id;

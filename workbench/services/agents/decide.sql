-- name: ids_like
SELECT assigned_agent_id AS id FROM agents WHERE LOWER(assigned_agent_id) LIKE LOWER(:prefix || '%')
UNION ALL
SELECT agent_id FROM former_ids WHERE LOWER(agent_id) LIKE LOWER(:prefix || '%');

-- name: space
SELECT s.id, s.name, p.name AS project FROM sessions s JOIN projects p ON p.id = s.project_id
WHERE s.id = :id AND s.deleted_at IS NULL AND p.deleted_at IS NULL;

-- name: session_of
SELECT s.id, s.name, p.name AS project FROM agents a
JOIN sessions s ON s.id = a.session_id JOIN projects p ON p.id = s.project_id
WHERE a.id = :id AND s.deleted_at IS NULL AND p.deleted_at IS NULL;

-- name: session
SELECT s.id FROM sessions s JOIN projects p ON p.id = s.project_id
WHERE s.id = :id AND s.deleted_at IS NULL AND p.deleted_at IS NULL;

-- name: admit
UPDATE agents SET registration_status = 'assigned' WHERE id = :id AND registration_status = 'pending';

-- name: definition_of
SELECT d.name FROM agents a JOIN definitions d ON d.id = a.definition_id WHERE a.id = :id;

-- name: suggested
-- Other questions may be among them.
SELECT payload FROM approvals
WHERE status = 'pending' AND kind = 'registration' AND LOWER(payload) LIKE LOWER('%"suggested_id": "' || CAST(:prefix AS TEXT) || '%');

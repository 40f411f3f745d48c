-- name: has_id
SELECT 1 AS found FROM agents WHERE assigned_agent_id = :agent_id;

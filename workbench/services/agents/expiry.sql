-- name: forgotten
SELECT id FROM agents WHERE registration_status = 'pending' AND registered_at <= :before
ORDER BY registered_at LIMIT 500;

-- name: run_out
SELECT id, registration_status, session_id FROM agents
WHERE expires_at IS NOT NULL AND expired = 0 AND expires_at <= :now ORDER BY expires_at LIMIT 500;

-- name: expire
UPDATE agents SET expired = 1 WHERE id = :id;

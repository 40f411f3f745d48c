-- name: unchecked
SELECT approval_id FROM integrations WHERE state = 'asked' AND checked = 0 ORDER BY approval_id;

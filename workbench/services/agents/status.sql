-- name: set_status
UPDATE agents SET registration_status = :status WHERE id = :id AND registration_status <> :status;

-- name: activate
UPDATE agents SET registration_status = 'active'
WHERE id = :id AND registration_status IN ('assigned', 'inactive');

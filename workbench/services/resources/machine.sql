-- name: list
SELECT machine, name, device, amount, vram, problem FROM resources
WHERE CAST(:machine AS TEXT) IS NULL OR machine = :machine ORDER BY name, device;

-- name: forget
DELETE FROM resources WHERE CAST(:machine AS TEXT) IS NULL OR machine = :machine;

-- name: add
INSERT INTO resources (machine, name, device, amount, vram, problem)
VALUES (:machine, :name, :device, :amount, CAST(:vram AS {{big}}), CAST(:problem AS TEXT));

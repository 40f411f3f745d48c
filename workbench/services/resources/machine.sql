-- name: list
SELECT name, device, amount, vram, problem FROM resources ORDER BY name, device;

-- name: forget
DELETE FROM resources;

-- name: add
INSERT INTO resources (name, device, amount, vram, problem)
VALUES (:name, :device, :amount, CAST(:vram AS {{big}}), CAST(:problem AS TEXT));

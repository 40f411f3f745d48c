-- part: is_there
-- Without a machine: on those that have a clone.
(machine = :machine OR (CAST(:machine AS TEXT) IS NULL AND machine NOT LIKE 'elsewhere:%'))

-- name: list
SELECT machine, name, device, amount, vram, problem FROM resources WHERE {{is_there}} ORDER BY name, device;

-- name: machines
SELECT DISTINCT machine FROM resources ORDER BY machine;

-- name: enlisted_by
SELECT machine FROM machine_workers WHERE agent_id = CAST(:agent AS TEXT);

-- name: forget
DELETE FROM resources WHERE {{is_there}};

-- name: add
INSERT INTO resources (machine, name, device, amount, vram, problem)
VALUES (:machine, :name, :device, :amount, CAST(:vram AS {{big}}), CAST(:problem AS TEXT));

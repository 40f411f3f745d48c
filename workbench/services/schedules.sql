-- name: list
SELECT * FROM schedules ORDER BY next_at IS NULL, next_at, plan;

-- name: get
SELECT * FROM schedules WHERE plan = :plan;

-- name: has_plan
SELECT 1 FROM tasks WHERE plan = :plan LIMIT 1;

-- name: put
-- What is under way goes on.
INSERT INTO schedules (plan, at, every, missed, options, set_at, next_at)
VALUES (:plan, CAST(:at AS TEXT), CAST(:every AS TEXT), :missed, :options, :now, :next)
ON CONFLICT (plan) DO UPDATE SET at = excluded.at, every = excluded.every, missed = excluded.missed,
    options = excluded.options, set_at = excluded.set_at, next_at = excluded.next_at;

-- name: remove
DELETE FROM schedules WHERE plan = :plan;

-- name: due
SELECT plan FROM schedules WHERE next_at <= :now ORDER BY next_at, plan;

-- name: under_way
SELECT * FROM schedules WHERE started_at IS NOT NULL AND ended_at IS NULL
  AND (CAST(:machine AS TEXT) IS NULL OR machine = :machine) ORDER BY plan;

-- name: advance
UPDATE schedules SET next_at = CAST(:next AS {{big}}) WHERE plan = :plan;

-- name: begin
UPDATE schedules SET due_at = :due, started_at = :now, until_at = CAST(:until AS {{big}}), process = NULL, starts = 1,
    ended_at = NULL, status = NULL, outcome = NULL, machine = :machine
WHERE plan = :plan;

-- name: again
UPDATE schedules SET process = NULL, starts = starts + 1 WHERE plan = :plan;

-- name: started
UPDATE schedules SET process = :process WHERE plan = :plan;

-- name: end
UPDATE schedules SET ended_at = :now, status = CAST(:status AS {{big}}), outcome = :outcome
WHERE plan = :plan AND started_at IS NOT NULL AND ended_at IS NULL RETURNING *;

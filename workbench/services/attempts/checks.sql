-- name: again
UPDATE attempt_checks SET state = 'waiting', tries = 0, output = ''
WHERE state = 'running' AND (CAST(:machine AS TEXT) IS NULL OR EXISTS (
    SELECT 1 FROM task_attempts x
    WHERE x.task_id = attempt_checks.task_id AND x.attempt = attempt_checks.attempt AND x.machine = :machine));

-- name: open
SELECT c.task_id, c.attempt, c.state FROM attempt_checks c
JOIN task_attempts x ON x.task_id = c.task_id AND x.attempt = c.attempt
WHERE c.state IN ('waiting', 'running') AND (CAST(:machine AS TEXT) IS NULL OR x.machine = :machine);

-- name: waiting
SELECT c.*, s.worktree FROM attempt_checks c
JOIN task_status s ON s.task_id = c.task_id
JOIN task_attempts x ON x.task_id = c.task_id AND x.attempt = c.attempt
WHERE c.state = 'waiting' AND (CAST(:machine AS TEXT) IS NULL OR x.machine = :machine) ORDER BY c.asked_at, c.task_id LIMIT 100;

-- name: forget
DELETE FROM attempt_checks WHERE state IN ('waiting', 'running') AND NOT EXISTS (
    SELECT 1 FROM task_attempts x
    WHERE x.task_id = attempt_checks.task_id AND x.attempt = attempt_checks.attempt AND x.ended_at IS NULL);

-- name: show
UPDATE attempt_checks SET state = 'running', started_at = COALESCE(started_at, :now), tries = :tries,
    commit_hash = CAST(:commit AS TEXT), output = :output, exit_code = CAST(:exit_code AS {{big}})
WHERE task_id = :task_id AND attempt = :attempt AND state IN ('waiting', 'running') AND EXISTS (
    SELECT 1 FROM task_attempts x WHERE x.task_id = :task_id AND x.attempt = :attempt AND x.ended_at IS NULL);

-- name: end
UPDATE attempt_checks SET state = :state, ended_at = :now, output = :output,
    exit_code = CAST(:exit_code AS {{big}}), metrics = CAST(:metrics AS TEXT)
WHERE task_id = :task_id AND attempt = :attempt AND state IN ('waiting', 'running') AND EXISTS (
    SELECT 1 FROM task_attempts x WHERE x.task_id = :task_id AND x.attempt = :attempt AND x.ended_at IS NULL);

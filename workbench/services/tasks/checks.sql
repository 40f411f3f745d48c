-- name: of_persona
SELECT check_stated FROM personas WHERE id = :persona;

-- name: ask
INSERT INTO attempt_checks (task_id, attempt, check_stated, commit_hash, state, asked_at, ending)
VALUES (:task_id, :attempt, :check, CAST(:commit AS TEXT), 'waiting', :now, CAST(:ending AS TEXT))
ON CONFLICT (task_id, attempt) DO NOTHING;

-- name: find
SELECT * FROM attempt_checks WHERE task_id = :task_id AND attempt = :attempt;

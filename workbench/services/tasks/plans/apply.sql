-- name: add
INSERT INTO plans (name, sha256, created_by, created_at, updated_at) VALUES (:name, :sha256, :by, :now, :now);

-- name: set_workplace
UPDATE plans SET workplace = CAST(:workplace AS TEXT), workplace_trusted = :trusted WHERE name = :name;

-- name: remember
UPDATE plans SET sha256 = :sha256, updated_at = :now WHERE name = :name;

-- name: set_parent
UPDATE tasks SET parent_id = CAST(:parent AS {{big}}) WHERE id = :id;

-- name: set_task
UPDATE tasks SET title = :title, description = :description, persona_id = :persona, target_worktree = :worktree,
    run = :run, check_stated = CAST(:check AS TEXT), done_when = CAST(:done_when AS TEXT), context_ref = :context_ref, metadata = :metadata, max_retries = :max_retries, lease_us = :lease_us,
    session_id = CAST(:session AS TEXT), on_failure = :on_failure, no_retry = :no_retry,
    due = CAST(:due AS TEXT)
WHERE id = :id;

-- name: set_status
-- A change of session lifts the reservation: that agent could not claim the task in another session.
UPDATE task_status SET persona_id = :persona, worktree = :worktree, session_id = :session, priority = :priority,
    needs = CAST(:needs AS TEXT),
    reserved_for = CASE WHEN CAST(:session AS TEXT) IN ('', session_id) THEN reserved_for END
WHERE task_id = :id;

-- name: detach
UPDATE tasks SET plan = NULL WHERE id = :id;

-- name: set_task
UPDATE tasks SET title = :title, description = :description, run = CAST(:run AS TEXT),
    check_stated = CAST(:check AS TEXT), persona_id = :persona_id,
    target_worktree = CAST(:target_worktree AS TEXT), max_retries = :max_retries,
    context_ref = CAST(:context_ref AS TEXT), on_failure = :on_failure,
    due = CAST(:due AS TEXT)
WHERE id = :id;

-- name: set_status
UPDATE task_status SET persona_id = :persona_id, worktree = :worktree, needs = CAST(:needs AS TEXT)
WHERE task_id = :id;

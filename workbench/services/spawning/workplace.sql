-- name: taken_names
SELECT name FROM worktrees WHERE name LIKE :prefix || '%';

-- name: plan
-- Of an agent that is spawned for a task: the task's; of another: the newest with an open task in its worktree.
SELECT p.name, p.workplace, p.workplace_trusted FROM plans p
JOIN tasks t ON t.plan = p.name JOIN task_status s ON s.task_id = t.id
WHERE p.workplace IS NOT NULL AND (t.id = CAST(:task AS {{big}})
    OR (CAST(:task AS {{big}}) IS NULL AND CAST(:worktree AS TEXT) <> '' AND s.worktree = CAST(:worktree AS TEXT)
        AND s.status IN ('pending', 'claimed', 'in_progress')))
ORDER BY p.created_at DESC, p.name LIMIT 1;

-- name: add
INSERT INTO change_requests (worktree, approval_id, commit_id, base_id, note, task_id, person, requested_by, requested_at)
VALUES (:worktree, :approval_id, :commit_id, :base_id, :note, :task_id, :person, :by, :now)
RETURNING id;

-- name: add_comment
INSERT INTO change_comments (request_id, number, path, side, first_line, last_line, quoted, comment, cell)
VALUES (:request, :number, :path, :side, :first, :last, :quoted, :comment, :cell);

-- name: one
SELECT r.* FROM change_requests r WHERE r.id = :id;

-- Those of an earlier worktree of the same name are left out.
-- part: requests
SELECT r.* FROM worktrees w JOIN change_requests r ON r.worktree = w.name AND r.requested_at >= w.created_at

-- name: of_worktree
{{requests}}
WHERE w.name = :worktree
ORDER BY r.id DESC LIMIT :limit;

-- name: of_active_worktrees
{{requests}}
WHERE w.status IN ('active', 'integrating')
ORDER BY r.id DESC LIMIT :limit;

-- name: comments
SELECT c.* FROM change_comments c
WHERE CAST(:requests AS TEXT) <> '[]'
  AND c.request_id IN (SELECT CAST(n.value AS {{big}}) FROM {{rows_of requests}} AS n)
ORDER BY c.request_id, c.number;

-- name: open_tasks
SELECT t.id, t.session_id,
    CASE WHEN s.status <> 'pending' THEN s.assigned_agent_id END AS holder
FROM task_status s JOIN tasks t ON t.id = s.task_id
WHERE s.worktree = :worktree AND s.status IN ('pending', 'claimed', 'in_progress') ORDER BY t.id;

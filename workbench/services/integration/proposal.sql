-- name: get
SELECT * FROM integrations WHERE approval_id = :id;

-- name: put
INSERT INTO integrations (approval_id, worktree, state, checked, despite_gates, queued_at)
VALUES (:id, :name, 'asked', :checked, 0, NULL)
ON CONFLICT (worktree) DO UPDATE SET approval_id = excluded.approval_id, state = 'asked',
    checked = excluded.checked, despite_gates = 0, queued_at = NULL;

-- name: set_checked
UPDATE integrations SET checked = :checked WHERE approval_id = :id;

-- name: set_state
UPDATE integrations SET state = :state WHERE approval_id = :id;

-- name: branches
SELECT name, branch_name, integrated_commit FROM worktrees;

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

-- name: enqueue
UPDATE integrations SET state = 'queued', despite_gates = :despite, queued_at = :now WHERE approval_id = :id;

-- name: queue
SELECT approval_id FROM integrations WHERE state = 'queued' ORDER BY queued_at, approval_id;

-- name: unchecked
SELECT approval_id FROM integrations WHERE state = 'asked' AND checked = 0 ORDER BY approval_id;

-- name: cut_off
SELECT w.name, i.approval_id FROM worktrees w LEFT JOIN integrations i ON i.worktree = w.name
WHERE w.status = 'integrating' AND (i.state IS NULL OR i.state <> 'queued') ORDER BY w.created_at, w.name;

-- name: branches
SELECT name, branch_name, integrated_commit FROM worktrees;

-- name: closed
SELECT c.*, a.requester, a.asker, a.created_at AS requested_at, a.status AS decision, a.decided_by, a.person, a.decided_at,
    a.reason AS decision_reason
FROM closed_worktrees c LEFT JOIN approvals a ON a.id = c.approval_id
WHERE (CAST(:name AS TEXT) IS NULL OR c.name = :name)
  AND (CAST(:before AS {{big}}) IS NULL OR c.id < :before)
ORDER BY c.id DESC LIMIT :limit;

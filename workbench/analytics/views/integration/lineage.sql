CREATE VIEW lineage AS
WITH made AS (
    SELECT task_id, attempt, list(commit_id ORDER BY committed_at, commit_id) AS commits, max(merge_commit) AS merge_commit,
        max(approval_id) AS approval_id
    FROM commits WHERE task_id IS NOT NULL GROUP BY task_id, attempt
)
SELECT x.task_id, t.title, t.plan, x.attempt, a.agent, x.outcome, t.worktree, x.base_commit, m.commits, x.kept_commit,
    m.approval_id, coalesce(p.person, p.decided_by) AS decided_by, m.merge_commit,
    CASE WHEN m.merge_commit IS NOT NULL THEN p.decided_at END AS approved_at,
    CASE WHEN x.outcome = 'completed' THEN CAST(t.artifacts AS JSON) END AS artifacts
FROM raw_attempts x
JOIN raw_tasks t ON t.id = x.task_id
JOIN raw_agents a ON a.id = x.agent_uid
LEFT JOIN made m ON m.task_id = x.task_id AND m.attempt = x.attempt
LEFT JOIN approvals p ON p.id = m.approval_id;

COMMENT ON VIEW lineage IS 'What each attempt led to: task, attempt, commits, merge, artifacts.';
COMMENT ON COLUMN lineage.task_id IS 'The task.';
COMMENT ON COLUMN lineage.title IS 'Its title.';
COMMENT ON COLUMN lineage.plan IS 'Its plan.';
COMMENT ON COLUMN lineage.attempt IS 'The attempt at it.';
COMMENT ON COLUMN lineage.agent IS 'The agent that made the attempt.';
COMMENT ON COLUMN lineage.outcome IS 'How the attempt ended; null: it runs.';
COMMENT ON COLUMN lineage.worktree IS 'The worktree.';
COMMENT ON COLUMN lineage.base_commit IS 'The commit that the attempt began at, if a supervisor recorded it.';
COMMENT ON COLUMN lineage.commits IS 'The commits that it made, oldest first; null: none is known. See the view commits.';
COMMENT ON COLUMN lineage.kept_commit IS 'The commit that keeps its work, if it did not complete the task.';
COMMENT ON COLUMN lineage.approval_id IS 'The integration that the commits were part of.';
COMMENT ON COLUMN lineage.decided_by IS 'Who decided it: the person, if the name is known.';
COMMENT ON COLUMN lineage.merge_commit IS 'The commit that merged them; null: not merged.';
COMMENT ON COLUMN lineage.approved_at IS 'When the merge was approved.';
COMMENT ON COLUMN lineage.artifacts IS 'What the task made, if this attempt completed it.';

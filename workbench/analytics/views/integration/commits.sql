-- A commit belongs to the attempt that was made, by its author or in the worktree that would merge it, when it was committed.
-- Git's times have whole seconds. What an attempt began with, which may have been merged from another worktree, is not its own.
CREATE VIEW commits AS
WITH requests AS (
    SELECT id AS approval_id, substr(subject, 10) AS worktree,
        CASE WHEN status = 'approved' THEN outcome->>'commit' END AS merge_commit,
        from_json(payload->'commits',
            '[{"id": "VARCHAR", "author": "VARCHAR", "at_us": "BIGINT", "subject": "VARCHAR"}]') AS made
    FROM raw_approvals WHERE kind = 'integration' AND payload IS NOT NULL
), requested AS (
    SELECT approval_id, worktree, merge_commit, unnest(made, max_depth := 2), generate_subscripts(made, 1) AS place
    FROM requests
), newest AS (
    SELECT * FROM requested
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY merge_commit IS NOT NULL DESC, approval_id DESC) = 1
), attempts_made AS (
    SELECT x.task_id, x.attempt, x.claimed_us, x.ended_us, x.base_commit, t.worktree, a.agent
    FROM raw_attempts x JOIN raw_tasks t ON t.id = x.task_id JOIN raw_agents a ON a.id = x.agent_uid
), pairs AS (
    SELECT n.id, n.approval_id, n.place, n.author, n.at_us, n.worktree AS merged_worktree, x.*
    FROM newest n JOIN attempts_made x ON x.agent = n.author
    UNION ALL
    SELECT n.id, n.approval_id, n.place, n.author, n.at_us, n.worktree, x.*
    FROM newest n JOIN attempts_made x ON x.worktree = n.worktree AND x.agent <> n.author
), candidates AS (
    SELECT * FROM pairs WHERE at_us BETWEEN claimed_us // 1000000 * 1000000 AND coalesce(ended_us, at_us)
), owners AS (
    SELECT c.* FROM candidates c
    LEFT JOIN requested begun ON begun.approval_id = c.approval_id AND begun.id = c.base_commit AND begun.place <= c.place
    WHERE begun.id IS NULL
    QUALIFY row_number() OVER (
        PARTITION BY c.id ORDER BY c.agent = c.author DESC, c.worktree = c.merged_worktree DESC, c.claimed_us DESC
    ) = 1
)
SELECT n.id AS commit_id, n.subject AS message, n.author, make_timestamptz(n.at_us) AS committed_at,
    coalesce(o.worktree, n.worktree) AS worktree, o.task_id, o.attempt, n.approval_id, n.merge_commit
FROM newest n LEFT JOIN owners o ON o.id = n.id;

COMMENT ON VIEW commits IS 'Commits whose integration was requested, at most the newest 50 of each request.';
COMMENT ON COLUMN commits.commit_id IS 'The commit.';
COMMENT ON COLUMN commits.message IS 'First line of its message.';
COMMENT ON COLUMN commits.author IS 'Its author, as the commit says; agents that Workbench started have their ids here.';
COMMENT ON COLUMN commits.committed_at IS 'When it was made, as the commit says.';
COMMENT ON COLUMN commits.worktree IS 'The worktree that it was made in; if no task is known, the one that would merge it.';
COMMENT ON COLUMN commits.task_id IS 'The task that its author did then, or that was done in the worktree; null: none is known.';
COMMENT ON COLUMN commits.attempt IS 'The attempt at that task.';
COMMENT ON COLUMN commits.approval_id IS 'The last approval that would merge it.';
COMMENT ON COLUMN commits.merge_commit IS 'The commit that merged it; null: it is not merged.';

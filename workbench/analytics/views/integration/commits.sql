-- A commit belongs to the attempt that was made in its worktree when it was committed. Git's times have whole seconds.
CREATE VIEW commits AS
WITH merges AS (
    SELECT id, substr(subject, 10) AS worktree, status, payload,
        CASE WHEN status = 'approved' THEN outcome->>'commit' END AS merge_commit
    FROM raw_approvals WHERE kind = 'integration' AND payload IS NOT NULL
), listed AS (
    SELECT id AS approval_id, worktree, status, merge_commit, unnest(from_json(payload->'commits',
        '[{"id": "VARCHAR", "author": "VARCHAR", "at_us": "BIGINT", "subject": "VARCHAR"}]')) AS made
    FROM merges
), newest AS (
    SELECT worktree, made.id AS commit_id, arg_max(struct_pack(approval_id, status, merge_commit, made), approval_id) AS last
    FROM listed GROUP BY worktree, commit_id
), owners AS (
    SELECT n.worktree, n.commit_id, arg_max(struct_pack(task_id := x.task_id, attempt := x.attempt), x.claimed_us) AS attempt
    FROM newest n
    JOIN raw_tasks t ON t.worktree = n.worktree
    JOIN raw_attempts x ON x.task_id = t.id AND n.last.made.at_us >= x.claimed_us // 1000000 * 1000000
        AND n.last.made.at_us <= coalesce(x.ended_us, n.last.made.at_us)
    GROUP BY n.worktree, n.commit_id
)
SELECT n.commit_id, n.last.made.subject AS message, n.last.made.author AS author,
    make_timestamptz(n.last.made.at_us) AS committed_at, n.worktree, o.attempt.task_id AS task_id,
    o.attempt.attempt AS attempt, n.last.approval_id AS approval_id, n.last.merge_commit AS merge_commit
FROM newest n LEFT JOIN owners o ON o.worktree = n.worktree AND o.commit_id = n.commit_id;

COMMENT ON VIEW commits IS 'Commits whose integration was requested, at most the newest 50 of each request.';
COMMENT ON COLUMN commits.commit_id IS 'The commit.';
COMMENT ON COLUMN commits.message IS 'First line of its message.';
COMMENT ON COLUMN commits.author IS 'Its author, as the commit says; agents that Workbench started have their ids here.';
COMMENT ON COLUMN commits.committed_at IS 'When it was made, as the commit says.';
COMMENT ON COLUMN commits.worktree IS 'The worktree that it was made in.';
COMMENT ON COLUMN commits.task_id IS 'The task that was being done in the worktree then; null: none was.';
COMMENT ON COLUMN commits.attempt IS 'The attempt at that task.';
COMMENT ON COLUMN commits.approval_id IS 'The last approval that would merge it.';
COMMENT ON COLUMN commits.merge_commit IS 'The commit that merged it; null: it is not merged.';

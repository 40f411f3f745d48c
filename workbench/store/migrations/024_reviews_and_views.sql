-- What a person asks to be changed in a worktree, the views of tables that she keeps, and who decided an approval.

-- person: the name of who decided; null: no person did, or it was decided before this was recorded. changes_requested_at: when
-- changes were requested last while it was pending.
ALTER TABLE approvals ADD COLUMN person TEXT;
ALTER TABLE approvals ADD COLUMN changes_requested_at {{big}};
CREATE INDEX approvals_decided ON approvals (decided_at, id) WHERE status <> 'pending';

-- commit_id: what the comments are about. base_id: where its branch was forked. task_id: the task that was created for it.
CREATE TABLE change_requests (
    id {{id}},
    worktree TEXT NOT NULL REFERENCES worktrees (name),
    approval_id {{big}} REFERENCES approvals (id),
    commit_id TEXT NOT NULL,
    base_id TEXT NOT NULL,
    note TEXT NOT NULL,
    task_id {{big}} REFERENCES tasks (id),
    person TEXT,
    requested_by TEXT NOT NULL,
    requested_at {{big}} NOT NULL
) {{strict}};
CREATE INDEX change_requests_by_worktree ON change_requests (worktree, requested_at);

-- side: new, lines of commit_id, or old, lines of base_id. quoted: these lines as they were.
CREATE TABLE change_comments (
    request_id {{big}} NOT NULL REFERENCES change_requests (id),
    number {{big}} NOT NULL,
    path TEXT NOT NULL,
    side TEXT NOT NULL CHECK (side IN ('new', 'old')),
    first_line {{big}} NOT NULL,
    last_line {{big}} NOT NULL,
    quoted TEXT NOT NULL,
    comment TEXT NOT NULL,
    PRIMARY KEY (request_id, number)
) {{strict}};

-- area: the table of the panel. state: JSON, its search, filters and sorting.
CREATE TABLE saved_views (
    id {{id}},
    area TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    saved_by TEXT NOT NULL,
    saved_at {{big}} NOT NULL,
    UNIQUE (area, name)
) {{strict}};

-- Worktrees with repositories of their own, the queue of integrations, and steps that a crash must not leave half done.

-- What was taken over of the branch last, and when; what the person's repository looked like at the creation (JSON).
ALTER TABLE worktrees ADD COLUMN git_dir TEXT NOT NULL DEFAULT '';
-- The agent that made it (`created_by` is the name it had then); null: the operator.
ALTER TABLE worktrees ADD COLUMN creator TEXT REFERENCES agents (id);
ALTER TABLE worktrees ADD COLUMN confined {{big}} NOT NULL DEFAULT 0;
ALTER TABLE worktrees ADD COLUMN imported_commit TEXT;
ALTER TABLE worktrees ADD COLUMN imported_at {{big}};
ALTER TABLE worktrees ADD COLUMN protected TEXT NOT NULL DEFAULT '{}';

UPDATE worktrees SET creator = (SELECT id FROM agents WHERE assigned_agent_id = worktrees.created_by);

-- What has begun among files and has not ended: a creation is undone, a removal is done again; `rescue` is a removal
-- before which what is nowhere else is saved.
CREATE TABLE worktree_steps (
    name TEXT PRIMARY KEY,
    step TEXT NOT NULL CHECK (step IN ('create', 'rescue', 'remove')),
    path TEXT NOT NULL,
    git_dir TEXT NOT NULL,
    branch_name TEXT NOT NULL,
    branch_commit TEXT,
    begun_at {{big}} NOT NULL
) {{strict}};

-- Questions about integrations that are not settled yet. `checked`: the gates have run against the target as shown.
CREATE TABLE integrations (
    approval_id {{big}} PRIMARY KEY REFERENCES approvals (id),
    worktree TEXT NOT NULL UNIQUE REFERENCES worktrees (name),
    state TEXT NOT NULL CHECK (state IN ('asked', 'queued', 'merging')),
    checked {{big}} NOT NULL,
    despite_gates {{big}} NOT NULL,
    queued_at {{big}}
) {{strict}};
CREATE INDEX integrations_queued ON integrations (queued_at, approval_id) WHERE state = 'queued';

-- What happened within the last hours is found by these, however long the project has run.

CREATE INDEX tasks_by_creation ON tasks (created_at);
CREATE INDEX tasks_by_end ON task_status (completed_at) WHERE completed_at IS NOT NULL;
CREATE INDEX task_attempts_by_end ON task_attempts (ended_at);
CREATE INDEX approvals_by_decision ON approvals (decided_at) WHERE decided_at IS NOT NULL;

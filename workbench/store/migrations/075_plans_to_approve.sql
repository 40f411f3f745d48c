-- Tasks of agents that wait for a person's approval, because they are many or may spend much: approval_id is that
-- approval; null: a task is approved, or was never asked about. What was left out keeps it.

ALTER TABLE task_status ADD COLUMN approval_id {{big}} REFERENCES approvals (id);
CREATE INDEX task_status_to_approve ON task_status (approval_id) WHERE approval_id IS NOT NULL;
CREATE INDEX tasks_by_creator ON tasks (created_by, created_at);
CREATE INDEX approvals_of_plans ON approvals (requester) WHERE kind = 'plan';

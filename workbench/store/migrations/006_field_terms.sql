-- The field's terms for what had names of its own before.

ALTER TABLE spawns RENAME COLUMN orders TO request;

UPDATE events SET kind = 'task.retry_ready' WHERE kind = 'task.rested';
UPDATE events SET kind = 'worktree.protected_changed' WHERE kind = 'worktree.audited';

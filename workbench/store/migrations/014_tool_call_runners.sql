-- runner: the process that runs a call or waits for its permission, by pid and start time. Calls of one that has ended are
-- interrupted.
ALTER TABLE tool_calls ADD COLUMN runner TEXT NOT NULL DEFAULT '';

-- The day by which a task is to be done, as YYYY-MM-DD.

ALTER TABLE tasks ADD COLUMN due TEXT;

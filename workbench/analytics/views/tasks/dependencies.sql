CREATE VIEW dependencies AS SELECT task_id, depends_on FROM raw_dependencies;

COMMENT ON VIEW dependencies IS 'Which task waits for which.';
COMMENT ON COLUMN dependencies.task_id IS 'The task that waits.';
COMMENT ON COLUMN dependencies.depends_on IS 'The task that has to be completed first.';

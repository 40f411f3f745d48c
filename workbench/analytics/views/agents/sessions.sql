-- Names of deleted sessions and projects stay, because tasks still belong to them.
CREATE VIEW sessions AS
SELECT s.id, s.name AS session, p.name AS project, make_timestamptz(s.created_us) AS created_at
FROM raw_sessions s LEFT JOIN raw_projects p ON p.id = s.project_id;

COMMENT ON VIEW sessions IS 'Sessions, in which agents work apart from those of other sessions, and their projects.';
COMMENT ON COLUMN sessions.id IS 'Internal id, as events.session has it.';
COMMENT ON COLUMN sessions.session IS 'Name of the session.';
COMMENT ON COLUMN sessions.project IS 'Name of the project that the session belongs to.';
COMMENT ON COLUMN sessions.created_at IS 'When it was created.';

CREATE VIEW events AS
SELECT id, make_timestamptz(at_us) AS occurred_at, kind, actor, subject, session, data
FROM raw_events;

COMMENT ON VIEW events IS 'Everything that happened, in order: the feed that every other view follows.';
COMMENT ON COLUMN events.id IS 'Number of the event; a later event has a larger one.';
COMMENT ON COLUMN events.occurred_at IS 'When it happened.';
COMMENT ON COLUMN events.kind IS 'What happened, as noun.past: task.claimed. The manual lists all kinds.';
COMMENT ON COLUMN events.actor IS 'Who did it: the id of an agent at that time, operator, system or rule:NAME.';
COMMENT ON COLUMN events.subject IS 'What it is about, as noun:id: task:7.';
COMMENT ON COLUMN events.session IS 'Internal id of the session that it belongs to; null: none.';
COMMENT ON COLUMN events.data IS 'Details, which depend on the kind.';

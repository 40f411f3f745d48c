-- What the person was told: events of one digest, as JSON, and up to which event was looked. Events before this migration
-- are not told.
CREATE TABLE notifications (
    id {{id}},
    at {{big}} NOT NULL,
    sentence TEXT NOT NULL,
    items TEXT NOT NULL,
    left_out {{big}} NOT NULL
) {{strict}};
CREATE TABLE notification_cursor (
    one {{big}} PRIMARY KEY CHECK (one = 1),
    event_id {{big}} NOT NULL
) {{strict}};
INSERT INTO notification_cursor (one, event_id) SELECT 1, COALESCE(MAX(id), 0) FROM events;

-- How a digest gets to the person's own command or webhook. not_before: when it is tried again.
CREATE TABLE notification_deliveries (
    notification_id {{big}} NOT NULL REFERENCES notifications (id),
    channel TEXT NOT NULL CHECK (channel IN ('command', 'webhook')),
    state TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'failed')),
    tries {{big}} NOT NULL DEFAULT 0,
    not_before {{big}} NOT NULL,
    ended_at {{big}},
    error_code TEXT,
    error TEXT,
    PRIMARY KEY (notification_id, channel)
) {{strict}};
CREATE INDEX notification_deliveries_waiting ON notification_deliveries (not_before) WHERE state = 'waiting';

-- Agents that hold a task and have given no sign of life since a time.
CREATE TABLE silent_agents (
    agent_id TEXT PRIMARY KEY REFERENCES agents (id),
    task_id {{big}} NOT NULL,
    attempt {{big}} NOT NULL,
    since {{big}} NOT NULL
) {{strict}};

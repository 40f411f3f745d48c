CREATE VIEW messages AS
SELECT id, kind, sender, recipient, task_id, attempt, body,
    CASE WHEN acted_us IS NOT NULL THEN 'acted' WHEN seen_us IS NOT NULL THEN 'seen' ELSE 'queued' END AS state,
    approval_id,
    make_timestamptz(sent_us) AS sent_at,
    make_timestamptz(seen_us) AS seen_at,
    make_timestamptz(acted_us) AS acted_at
FROM raw_messages;

COMMENT ON VIEW messages IS 'What people and agents told each other, and what agents asked.';
COMMENT ON COLUMN messages.id IS 'Its number.';
COMMENT ON COLUMN messages.kind IS 'message, comment (on a task), question (of an agent) or answer.';
COMMENT ON COLUMN messages.sender IS 'The agent or the person who sent it.';
COMMENT ON COLUMN messages.recipient IS 'The agent it is for; null: a person, or whoever does the task next.';
COMMENT ON COLUMN messages.task_id IS 'The task it is about; null: none.';
COMMENT ON COLUMN messages.attempt IS 'The attempt in which a question was asked.';
COMMENT ON COLUMN messages.body IS 'Its text, without secrets.';
COMMENT ON COLUMN messages.state IS 'queued, seen (its agent has it) or acted (the agent acted on it; a question is answered).';
COMMENT ON COLUMN messages.approval_id IS 'The question in the inbox; see the view approvals.';
COMMENT ON COLUMN messages.sent_at IS 'When it was sent.';
COMMENT ON COLUMN messages.seen_at IS 'When its agent got it; null: it has not.';
COMMENT ON COLUMN messages.acted_at IS 'When its agent acted on it, or the question was closed; null: not yet.';

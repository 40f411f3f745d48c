-- A message has one part, and is a list of JSON; the key of the part says what it is.
CREATE VIEW transcripts AS
SELECT t.id, t.task_id, t.attempt, k.plan, make_timestamptz(t.at_us) AS sent_at, t.role,
    regexp_extract(t.content, '^\[\{"(\w+)"', 1) AS kind,
    nullif(regexp_extract(t.content, '^\[\{"tool_call": "([^"]+)"', 1), '') AS tool,
    t.content, t.chain, t.node
FROM raw_transcripts t LEFT JOIN raw_tasks k ON k.id = t.task_id;

COMMENT ON VIEW transcripts IS 'What the programs of attempts and models said to each other by way of the server, each message once.';
COMMENT ON COLUMN transcripts.id IS 'Number of the message; they rise in the order in which they were first sent.';
COMMENT ON COLUMN transcripts.task_id IS 'Number of the task.';
COMMENT ON COLUMN transcripts.attempt IS 'The attempt at the task.';
COMMENT ON COLUMN transcripts.plan IS 'The plan of the task.';
COMMENT ON COLUMN transcripts.sent_at IS 'When it was first sent.';
COMMENT ON COLUMN transcripts.role IS 'system, tools, user, assistant or tool; note: the rest is left out.';
COMMENT ON COLUMN transcripts.kind IS 'text, thinking, tool_call, tool_result, or other.';
COMMENT ON COLUMN transcripts.tool IS 'The tool that the model calls; null: it is no call.';
COMMENT ON COLUMN transcripts.content IS 'As JSON, without secrets, cut after 4,000 characters.';
COMMENT ON COLUMN transcripts.chain IS 'The message before it, by its node.';
COMMENT ON COLUMN transcripts.node IS 'Identifies it, with all messages before it.';

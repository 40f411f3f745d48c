CREATE VIEW failures AS
SELECT 'attempt' AS kind,
    coalesce(x.error_class, CASE x.outcome WHEN 'expired' THEN 'lease lost' ELSE 'unclassified' END) AS class,
    make_timestamptz(x.ended_us) AS occurred_at, a.agent, x.task_id, x.error AS message
FROM raw_attempts x JOIN raw_agents a ON a.id = x.agent_uid WHERE x.outcome IN ('failed', 'expired')
UNION ALL
SELECT 'tool call', coalesce(c.error_code, c.state), make_timestamptz(c.ended_us), a.agent, c.task_id, c.tool_name
FROM raw_tool_calls c LEFT JOIN raw_agents a ON a.id = c.agent_uid WHERE c.state IN ('failed', 'interrupted')
UNION ALL
SELECT 'answer', coalesce(t.error_code, t.state), make_timestamptz(t.ended_us), NULL, NULL, c.title
FROM raw_turns t LEFT JOIN raw_conversations c ON c.id = t.conversation_id WHERE t.state IN ('failed', 'interrupted')
UNION ALL
SELECT 'gate', g.state, g.ended_at, NULL, NULL, g.command FROM gates g WHERE g.state <> 'passed'
UNION ALL
SELECT 'merge', e.data->>'code', make_timestamptz(e.at_us), NULL, NULL, substr(e.subject, 10)
FROM raw_events e WHERE e.kind = 'worktree.refused'
UNION ALL
SELECT 'process', CASE WHEN p.exit_code < 0 THEN 'signal ' || -p.exit_code ELSE 'exit status ' || p.exit_code END,
    make_timestamptz(p.ended_us), a.agent, NULL, p.reason
FROM raw_processes p JOIN raw_agents a ON a.id = p.agent_uid WHERE p.exit_code <> 0 AND p.reason IS NULL
UNION ALL
SELECT 'run', coalesce(r.error_code, r.state), make_timestamptz(r.ended_us), NULL, NULL, coalesce(r.error, r.name)
FROM raw_runs r WHERE r.state IN ('failed', 'lost');

COMMENT ON VIEW failures IS 'Whatever failed, of every kind, with the class of its cause.';
COMMENT ON COLUMN failures.kind IS 'attempt, tool call, answer, gate, merge, process or run.';
COMMENT ON COLUMN failures.class IS 'Cause: the class or code of the error, exit status N, signal N, not started, lease lost, or unclassified; of a gate failed or timeout.';
COMMENT ON COLUMN failures.occurred_at IS 'When.';
COMMENT ON COLUMN failures.agent IS 'The agent, if there is one.';
COMMENT ON COLUMN failures.task_id IS 'The task, if there is one.';
COMMENT ON COLUMN failures.message IS 'The error of an attempt or a run, the tool, the conversation, the command of a gate, or the worktree.';

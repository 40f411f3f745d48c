CREATE VIEW spending AS
SELECT s.id, make_timestamptz(s.at_us) AS sent_at, s.source, s.provider, s.model, a.agent, s.task_id, s.attempt, s.plan,
    s.session_id, s.definition, s.definition_hash, s.run_id, s.conversation_id, s.status, s.error_code, s.seconds,
    s.first_byte_seconds, s.input_tokens, s.cached_tokens, s.cache_write_tokens, s.cache_write_hour_tokens,
    s.output_tokens, s.reasoning_tokens, s.is_cut = 1 AS cut, s.is_estimated = 1 AS estimated, s.cost_usd
FROM raw_spending s LEFT JOIN raw_agents a ON a.id = s.agent_uid;

COMMENT ON VIEW spending IS 'What requests to models used and cost: of agents by way of the server, of conversations, and as agents report.';
COMMENT ON COLUMN spending.id IS 'Number of the row.';
COMMENT ON COLUMN spending.sent_at IS 'When the request was sent.';
COMMENT ON COLUMN spending.source IS 'gateway: passed on by the server; chat: of a conversation; reported: by the agent that made it.';
COMMENT ON COLUMN spending.provider IS 'The provider that answered.';
COMMENT ON COLUMN spending.model IS 'The model, as the provider names it.';
COMMENT ON COLUMN spending.agent IS 'The agent that it was for; null: the operator.';
COMMENT ON COLUMN spending.task_id IS 'Number of the task that it was for; null: none.';
COMMENT ON COLUMN spending.attempt IS 'The attempt at the task.';
COMMENT ON COLUMN spending.plan IS 'The plan of the task.';
COMMENT ON COLUMN spending.session_id IS 'Internal id of the session that the task, or the agent, belongs to.';
COMMENT ON COLUMN spending.definition IS 'Name of the agent''s definition then.';
COMMENT ON COLUMN spending.definition_hash IS 'Content hash of the definition, as the attempt had it.';
COMMENT ON COLUMN spending.run_id IS 'Id of the run that it was for; null: none.';
COMMENT ON COLUMN spending.conversation_id IS 'Id of the conversation; null: it is of none.';
COMMENT ON COLUMN spending.status IS 'HTTP status of the provider''s answer; null: not known.';
COMMENT ON COLUMN spending.error_code IS 'Why it failed; null: it did not.';
COMMENT ON COLUMN spending.seconds IS 'Seconds until its answer ended.';
COMMENT ON COLUMN spending.first_byte_seconds IS 'Seconds until its answer began.';
COMMENT ON COLUMN spending.input_tokens IS 'Tokens read anew: neither from a cache nor written to one; null: not known.';
COMMENT ON COLUMN spending.cached_tokens IS 'Tokens that the provider read from its cache.';
COMMENT ON COLUMN spending.cache_write_tokens IS 'Tokens that it wrote to its cache for five minutes.';
COMMENT ON COLUMN spending.cache_write_hour_tokens IS 'Tokens that it wrote to its cache for an hour.';
COMMENT ON COLUMN spending.output_tokens IS 'Tokens of the answer, with what the model thought.';
COMMENT ON COLUMN spending.reasoning_tokens IS 'Of them, those of thoughts.';
COMMENT ON COLUMN spending.cut IS 'Whether the answer ended before its end.';
COMMENT ON COLUMN spending.estimated IS 'Whether its tokens are guessed by its size, because it was cut.';
COMMENT ON COLUMN spending.cost_usd IS 'Cost in US dollars by the prices of that day; null: no price is known.';

CREATE VIEW messages AS
SELECT m.id, m.conversation_id, c.title AS conversation, c.definition, m.number, m.role, m.state, m.content, m.model,
    m.definition_hash, m.prompt_hash, m.include, m.end_reason, m.cut_at, m.error_code, m.input_tokens, m.output_tokens,
    m.requests, m.unmeasured, m.cost_usd, m.replaced,
    make_timestamptz(m.created_us) AS created_at,
    make_timestamptz(m.ended_us) AS ended_at,
    (m.ended_us - m.created_us) / 1e6 AS seconds
FROM raw_messages m LEFT JOIN raw_conversations c ON c.id = m.conversation_id;

COMMENT ON VIEW messages IS 'Messages of conversations, with the tokens and cost of answers.';
COMMENT ON COLUMN messages.id IS 'Its id.';
COMMENT ON COLUMN messages.conversation_id IS 'Id of the conversation.';
COMMENT ON COLUMN messages.conversation IS 'Title of the conversation.';
COMMENT ON COLUMN messages.definition IS 'Name of the definition whose agent answers.';
COMMENT ON COLUMN messages.number IS 'Place in the conversation.';
COMMENT ON COLUMN messages.role IS 'user or assistant.';
COMMENT ON COLUMN messages.state IS 'sent, running, completed, stopped, interrupted or failed.';
COMMENT ON COLUMN messages.content IS 'The text; null if longer than 20,000 characters: list_messages has it.';
COMMENT ON COLUMN messages.model IS 'The model that answered.';
COMMENT ON COLUMN messages.definition_hash IS 'Hash of the definition''s files then.';
COMMENT ON COLUMN messages.prompt_hash IS 'Hash of the system prompt that was sent.';
COMMENT ON COLUMN messages.include IS 'Rules and references that were chosen for it, as JSON.';
COMMENT ON COLUMN messages.end_reason IS 'stop, or length: cut at its limit of tokens; null: not completed.';
COMMENT ON COLUMN messages.cut_at IS 'Tokens at which its limit cut the answer.';
COMMENT ON COLUMN messages.error_code IS 'Code of the error that ended the answer.';
COMMENT ON COLUMN messages.input_tokens IS 'Tokens that were sent; null: not reported.';
COMMENT ON COLUMN messages.output_tokens IS 'Tokens of the answer; null: not reported.';
COMMENT ON COLUMN messages.requests IS 'Requests to the provider.';
COMMENT ON COLUMN messages.unmeasured IS 'Requests whose tokens are unknown.';
COMMENT ON COLUMN messages.cost_usd IS 'Cost in US dollars; null: no price is known.';
COMMENT ON COLUMN messages.replaced IS 'Whether another answer has replaced it.';
COMMENT ON COLUMN messages.created_at IS 'When it was sent, or the answer begun.';
COMMENT ON COLUMN messages.ended_at IS 'When the answer ended.';
COMMENT ON COLUMN messages.seconds IS 'Seconds that the answer took.';

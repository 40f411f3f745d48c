CREATE VIEW turns AS
SELECT t.id, t.conversation_id, c.title AS conversation, c.definition, t.number, t.role, t.state, t.content, t.model,
    t.definition_hash, t.prompt_hash, t.include, t.end_reason, t.cut_at, t.error_code, t.input_tokens, t.output_tokens,
    t.requests, t.unmeasured, t.cost_usd, t.replaced,
    make_timestamptz(t.created_us) AS created_at,
    make_timestamptz(t.ended_us) AS ended_at,
    (t.ended_us - t.created_us) / 1e6 AS seconds
FROM raw_turns t LEFT JOIN raw_conversations c ON c.id = t.conversation_id;

COMMENT ON VIEW turns IS 'Turns of conversations, with the tokens and cost of answers.';
COMMENT ON COLUMN turns.id IS 'Its id.';
COMMENT ON COLUMN turns.conversation_id IS 'Id of the conversation.';
COMMENT ON COLUMN turns.conversation IS 'Title of the conversation.';
COMMENT ON COLUMN turns.definition IS 'Name of the definition whose agent answers.';
COMMENT ON COLUMN turns.number IS 'Place in the conversation.';
COMMENT ON COLUMN turns.role IS 'user or assistant.';
COMMENT ON COLUMN turns.state IS 'sent, running, completed, stopped, interrupted or failed.';
COMMENT ON COLUMN turns.content IS 'The text; null if longer than 20,000 characters: list_turns has it.';
COMMENT ON COLUMN turns.model IS 'The model that answered.';
COMMENT ON COLUMN turns.definition_hash IS 'Hash of the definition''s files then.';
COMMENT ON COLUMN turns.prompt_hash IS 'Hash of the system prompt that was sent.';
COMMENT ON COLUMN turns.include IS 'Rules and references that were chosen for it, as JSON.';
COMMENT ON COLUMN turns.end_reason IS 'stop, or length: cut at its limit of tokens; null: not completed.';
COMMENT ON COLUMN turns.cut_at IS 'Tokens at which its limit cut the answer.';
COMMENT ON COLUMN turns.error_code IS 'Code of the error that ended the answer.';
COMMENT ON COLUMN turns.input_tokens IS 'Tokens that were sent; null: not reported.';
COMMENT ON COLUMN turns.output_tokens IS 'Tokens of the answer; null: not reported.';
COMMENT ON COLUMN turns.requests IS 'Requests to the provider.';
COMMENT ON COLUMN turns.unmeasured IS 'Requests whose tokens are unknown.';
COMMENT ON COLUMN turns.cost_usd IS 'Cost in US dollars; null: no price is known.';
COMMENT ON COLUMN turns.replaced IS 'Whether another answer has replaced it.';
COMMENT ON COLUMN turns.created_at IS 'When it was sent, or the answer begun.';
COMMENT ON COLUMN turns.ended_at IS 'When the answer ended.';
COMMENT ON COLUMN turns.seconds IS 'Seconds that the answer took.';

CREATE VIEW model_requests AS
SELECT r.turn_id, r.conversation_id, c.title AS conversation, c.definition, r.number, r.purpose, r.model,
    make_timestamptz(r.started_us) AS started_at, r.seconds, r.first_token_seconds, r.input_tokens, r.cached_tokens,
    r.cache_write_tokens, r.output_tokens, r.thinking_tokens, r.cost_usd, r.end_reason, r.error_code
FROM raw_model_requests r LEFT JOIN raw_conversations c ON c.id = r.conversation_id;

COMMENT ON VIEW model_requests IS 'Requests to models, of which answers are made: a row for each, also those that failed.';
COMMENT ON COLUMN model_requests.turn_id IS 'Id of the answer.';
COMMENT ON COLUMN model_requests.conversation_id IS 'Id of the conversation.';
COMMENT ON COLUMN model_requests.conversation IS 'Title of the conversation.';
COMMENT ON COLUMN model_requests.definition IS 'Name of the definition whose agent answers.';
COMMENT ON COLUMN model_requests.number IS 'Place in the answer, from 1.';
COMMENT ON COLUMN model_requests.purpose IS 'answer, or summary: of a conversation that was too long for the model.';
COMMENT ON COLUMN model_requests.model IS 'The model that was asked.';
COMMENT ON COLUMN model_requests.started_at IS 'When it was sent.';
COMMENT ON COLUMN model_requests.seconds IS 'Seconds until what came of it had ended.';
COMMENT ON COLUMN model_requests.first_token_seconds IS 'Seconds until its first piece came; null: none came.';
COMMENT ON COLUMN model_requests.input_tokens IS 'Tokens that were sent, also those in a cache; null: not reported.';
COMMENT ON COLUMN model_requests.cached_tokens IS 'Of them, those that the provider read from its cache.';
COMMENT ON COLUMN model_requests.cache_write_tokens IS 'Of them, those that it wrote to its cache.';
COMMENT ON COLUMN model_requests.output_tokens IS 'Tokens of the answer; null: not reported.';
COMMENT ON COLUMN model_requests.thinking_tokens IS 'Of them, those of thoughts.';
COMMENT ON COLUMN model_requests.cost_usd IS 'Cost in US dollars; null: no price is known.';
COMMENT ON COLUMN model_requests.end_reason IS 'The provider''s word: stop, length, tool_call or content_filter; null: it did not end by itself.';
COMMENT ON COLUMN model_requests.error_code IS 'Code of the error that ended it; ANSWER_STOPPED: the answer was ended from outside.';

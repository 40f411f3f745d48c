-- name: of_conversation
SELECT r.turn_id, r.number, r.purpose, t.model, r.started_at, r.seconds, r.first_token_seconds, r.input_tokens,
    r.cached_tokens, r.cache_write_tokens, r.output_tokens, r.thinking_tokens, r.cost_usd, r.end_reason, r.error_code
FROM model_requests r JOIN turns t ON t.id = r.turn_id
WHERE r.conversation_id = :conversation
ORDER BY t.number DESC, r.number DESC LIMIT :limit;

-- name: add
INSERT INTO model_requests (
    turn_id, number, conversation_id, purpose, started_at, seconds, first_token_seconds, input_tokens, cached_tokens,
    cache_write_tokens, output_tokens, thinking_tokens, cost_usd, end_reason, error_code
) VALUES (
    :turn, :number, :conversation, :purpose, :started_at, :seconds, :first_token_seconds, :input_tokens, :cached_tokens,
    :cache_write_tokens, :output_tokens, :thinking_tokens, :cost_usd, :end, :error_code
);

-- name: model_of
SELECT model FROM turns WHERE id = :turn;

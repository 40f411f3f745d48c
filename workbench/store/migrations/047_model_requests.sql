-- The requests to models that answers are made of, numbered from 1 in their answer.
-- purpose: answer, or summary: of the conversation, when it was too long for the model. seconds: until the answer to it
-- ended; first_token_seconds: until it began. What the provider did not report is null. cached_tokens and
-- cache_write_tokens are part of input_tokens, thinking_tokens of output_tokens. end_reason: the provider's word, such as
-- stop, length or tool_call; null: it did not end. error_code: why it failed.

CREATE TABLE model_requests (
    turn_id TEXT NOT NULL REFERENCES turns (id),
    number {{big}} NOT NULL,
    conversation_id TEXT NOT NULL,
    purpose TEXT NOT NULL CHECK (purpose IN ('answer', 'summary')),
    started_at {{big}} NOT NULL,
    seconds {{real}},
    first_token_seconds {{real}},
    input_tokens {{big}},
    cached_tokens {{big}},
    cache_write_tokens {{big}},
    output_tokens {{big}},
    thinking_tokens {{big}},
    cost_usd {{real}},
    end_reason TEXT,
    error_code TEXT,
    PRIMARY KEY (turn_id, number)
) {{strict}};
CREATE INDEX model_requests_by_conversation ON model_requests (conversation_id);

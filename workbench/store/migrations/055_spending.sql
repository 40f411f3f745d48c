-- What requests to models used and cost, one row a request: those that the gateway passed on, those of conversations, and
-- those that agents report. Of the tokens, input_tokens are those that were neither read from the provider's cache
-- (cached_tokens) nor written to it for five minutes or an hour; reasoning_tokens are part of output_tokens. What is not
-- known is null, also a cost. is_estimated: the answer was cut, and its tokens are guessed by its size.

CREATE TABLE spending (
    id {{id}},
    at {{big}} NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('gateway', 'chat', 'reported')),
    provider TEXT,
    model TEXT,
    agent_id TEXT,
    task_id {{big}},
    attempt {{big}},
    plan TEXT,
    session_id TEXT,
    definition_id TEXT,
    definition_hash TEXT,
    run_id {{big}},
    conversation_id TEXT,
    status {{big}},
    error_code TEXT,
    seconds {{real}},
    first_byte_seconds {{real}},
    input_tokens {{big}},
    cached_tokens {{big}},
    cache_write_tokens {{big}},
    cache_write_hour_tokens {{big}},
    output_tokens {{big}},
    reasoning_tokens {{big}},
    is_cut {{big}} NOT NULL DEFAULT 0,
    is_estimated {{big}} NOT NULL DEFAULT 0,
    cost_usd {{real}}
) {{strict}};
CREATE INDEX spending_by_task ON spending (task_id, attempt) WHERE task_id IS NOT NULL;
CREATE INDEX spending_by_time ON spending (at);

-- What was said between the programs of attempts and models, each message once: chain is that before it, node is that
-- with it. content: the message as JSON, without secrets. bytes: of content.

CREATE TABLE transcript (
    id {{id}},
    task_id {{big}} NOT NULL,
    attempt {{big}} NOT NULL,
    chain TEXT NOT NULL,
    node TEXT NOT NULL,
    at {{big}} NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    bytes {{big}} NOT NULL,
    UNIQUE (task_id, attempt, node)
) {{strict}};

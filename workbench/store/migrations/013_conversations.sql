-- Conversations of the operator with models: their messages, and the numbered frames of the answers.

-- definition_id, definition_path: the definition; null: a model alone. Copies of a directory have the same id, so the
-- path tells them apart. model: provider:model; null: that of the definition. include, tools, limits: JSON.
-- frames: the number of the newest frame.
CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    definition_id TEXT,
    definition_path TEXT,
    model TEXT,
    include TEXT NOT NULL,
    tools TEXT NOT NULL,
    limits TEXT NOT NULL,
    frames {{big}} NOT NULL DEFAULT 0,
    created_at {{big}} NOT NULL,
    updated_at {{big}} NOT NULL
) {{strict}};
CREATE INDEX conversations_by_update ON conversations (updated_at, id);

-- Messages, numbered from 1 in their conversation. A message of the role `assistant` is an answer; the columns from
-- `parts` on are only its own. parts: its text and tool calls, as JSON; null while it is made. history: the conversation
-- up to this answer as the engine keeps it, as JSON; null if the answer did not end by itself, or is not needed any more.
-- server: the nonce of the server that makes it. replaced_at: another answer to the same question took its place.
-- Tokens and costs that the provider does not report are null.
CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    number {{big}} NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    state TEXT NOT NULL CHECK (state IN ('sent', 'running', 'completed', 'stopped', 'interrupted', 'failed')),
    content TEXT NOT NULL,
    parts TEXT,
    history TEXT,
    model TEXT,
    definition_hash TEXT,
    server TEXT,
    error_code TEXT,
    error TEXT,
    input_tokens {{big}},
    output_tokens {{big}},
    requests {{big}},
    cost_usd {{real}},
    created_at {{big}} NOT NULL,
    ended_at {{big}},
    replaced_at {{big}},
    UNIQUE (conversation_id, number)
) {{strict}};
CREATE UNIQUE INDEX messages_running ON messages (conversation_id) WHERE state = 'running';

-- What came of the answers, piece by piece, numbered from 1 in the conversation. kind: message, token, tool_start,
-- tool_complete, complete, error, and others. data: JSON, the fields of the message that /ws/chat sends.
CREATE TABLE chat_frames (
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    number {{big}} NOT NULL,
    message_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    at {{big}} NOT NULL,
    PRIMARY KEY (conversation_id, number)
) {{strict}};
CREATE INDEX chat_frames_of_messages ON chat_frames (message_id, number);

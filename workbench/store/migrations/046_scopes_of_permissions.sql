-- What the operator has allowed of a tool without a question: within a conversation, within a task, or for calls with
-- such arguments. arguments: a JSON object of patterns; null: any. A null id does not restrict.

CREATE TABLE tool_allowances (
    id {{id}},
    tool TEXT NOT NULL,
    offered_by TEXT NOT NULL,
    offerer_name TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    offer TEXT NOT NULL,
    conversation_id TEXT,
    task_id {{big}},
    arguments TEXT,
    decided_by TEXT NOT NULL,
    decided_at {{big}} NOT NULL
) {{strict}};
CREATE INDEX tool_allowances_by_tool ON tool_allowances (tool, offered_by);

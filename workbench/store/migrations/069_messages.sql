-- What participants tell each other: messages to agents, comments on tasks, questions of agents to the person, and their
-- answers. `sender_id` and `agent_id` (the recipient) are agents; null is a person, or, as the recipient of a comment,
-- nobody yet. A question is acted on when it is answered or withdrawn.

CREATE TABLE messages (
    id {{id}},
    kind TEXT NOT NULL CHECK (kind IN ('message', 'comment', 'question', 'answer')),
    sender_id TEXT REFERENCES agents (id),
    sender TEXT NOT NULL,
    agent_id TEXT REFERENCES agents (id),
    task_id {{big}} REFERENCES tasks (id),
    attempt {{big}},
    body TEXT NOT NULL,
    approval_id {{big}} REFERENCES approvals (id),
    sent_at {{big}} NOT NULL,
    seen_at {{big}},
    acted_at {{big}}
) {{strict}};
CREATE INDEX messages_to_act_on ON messages (agent_id, id) WHERE acted_at IS NULL;
CREATE INDEX messages_of_tasks ON messages (task_id, id) WHERE task_id IS NOT NULL;
CREATE INDEX messages_by_sender ON messages (sender_id, sent_at) WHERE sender_id IS NOT NULL;
CREATE INDEX open_questions ON messages (task_id, attempt) WHERE kind = 'question' AND acted_at IS NULL;

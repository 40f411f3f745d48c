CREATE VIEW attempts AS
SELECT x.task_id, x.attempt, x.machine, a.agent, x.outcome, x.error, x.error_class,
    make_timestamptz(x.claimed_us) AS claimed_at,
    make_timestamptz(x.started_us) AS started_at,
    make_timestamptz(x.ended_us) AS ended_at,
    (x.ended_us - x.claimed_us) / 1e6 AS seconds,
    x.definition, x.definition_hash, x.prompt_hash, x.include, x.base_commit, x.kept_commit,
    x.profile, x.input_tokens, x.output_tokens, x.cost_usd
FROM raw_attempts x JOIN raw_agents a ON a.id = x.agent_uid;

COMMENT ON VIEW attempts IS 'Attempts at tasks: each is one claim, until it ended.';
COMMENT ON COLUMN attempts.task_id IS 'The task.';
COMMENT ON COLUMN attempts.attempt IS 'Number of the attempt at this task, from 1.';
COMMENT ON COLUMN attempts.machine IS 'The machine on which it is made; empty: it is older than names of machines.';
COMMENT ON COLUMN attempts.agent IS 'The agent that made it.';
COMMENT ON COLUMN attempts.outcome IS 'completed, failed, expired (the lease was lost), released or cancelled; null: it runs.';
COMMENT ON COLUMN attempts.error IS 'Why it did not complete the task.';
COMMENT ON COLUMN attempts.error_class IS 'Class of the error, such as ValueError, LIMIT or exit status 1, if one was reported; of an agent''s program auth, refused, limit, overloaded, context, turns, silent, crashed or failed.';
COMMENT ON COLUMN attempts.claimed_at IS 'When the agent claimed the task.';
COMMENT ON COLUMN attempts.started_at IS 'When it began to work.';
COMMENT ON COLUMN attempts.ended_at IS 'When it ended; null: it runs.';
COMMENT ON COLUMN attempts.seconds IS 'Seconds from the claim to the end.';
COMMENT ON COLUMN attempts.definition IS 'Name of the agent''s definition.';
COMMENT ON COLUMN attempts.definition_hash IS 'Hash of the definition''s files then.';
COMMENT ON COLUMN attempts.prompt_hash IS 'Hash of the system prompt that the agent was given.';
COMMENT ON COLUMN attempts.include IS 'Rules and references that were chosen for it, as JSON.';
COMMENT ON COLUMN attempts.base_commit IS 'The commit that it began at, if a supervisor recorded it.';
COMMENT ON COLUMN attempts.kept_commit IS 'The commit that keeps its work, if it did not complete the task and made any.';
COMMENT ON COLUMN attempts.profile IS 'The profile that the agent worked with, if that starts a program.';
COMMENT ON COLUMN attempts.input_tokens IS 'Input tokens, as the agent''s program says; null: it does not.';
COMMENT ON COLUMN attempts.output_tokens IS 'Output tokens, as the agent''s program says.';
COMMENT ON COLUMN attempts.cost_usd IS 'Cost in US dollars, as the agent''s program says.';

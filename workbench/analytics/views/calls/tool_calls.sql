-- Arguments and results of more than 20,000 characters are left out of the copy.
CREATE VIEW tool_calls AS
SELECT c.id, c.tool_name, c.source, c.kind, c.server, c.offered_by, c.offerer_name, c.configuration,
    c.version, c.caller, a.agent, c.task_id, c.attempt,
    w.name AS worktree, w.commit_id, c.conversation_id, c.definition_id, c.definition_hash, c.origin_node, c.origin_call,
    c.origin_caller, c.state, c.error_code, c.approval_id,
    make_timestamptz(c.requested_us) AS requested_at,
    make_timestamptz(c.started_us) AS started_at,
    make_timestamptz(c.ended_us) AS ended_at,
    (coalesce(c.started_us, c.ended_us) - c.requested_us) / 1e6 AS wait_seconds,
    (c.ended_us - c.started_us) / 1e6 AS seconds,
    c.progress, c.progress_total, c.progress_message, c.input_tokens, c.output_tokens, c.cost_usd,
    CAST(c.arguments AS JSON) AS arguments,
    CAST(c.result AS JSON) AS result
FROM raw_tool_calls c
LEFT JOIN raw_agents a ON a.id = c.agent_uid
LEFT JOIN raw_tasks t ON t.id = c.task_id
LEFT JOIN raw_worktrees w ON w.name = t.worktree;

COMMENT ON VIEW tool_calls IS 'Calls of tools, by agents, in conversations and from other nodes of a KOI network.';
COMMENT ON COLUMN tool_calls.id IS 'Its id.';
COMMENT ON COLUMN tool_calls.tool_name IS 'The tool; those of MCP servers are server__tool.';
COMMENT ON COLUMN tool_calls.source IS 'local or mcp.';
COMMENT ON COLUMN tool_calls.kind IS 'Where the tool comes from: an operation, a function of a notebook, a server, a definition, a trait; or unknown.';
COMMENT ON COLUMN tool_calls.server IS 'The MCP server that ran it; null: a local tool.';
COMMENT ON COLUMN tool_calls.offered_by IS 'Whose tool it was: workbench, notebook, project, definition:ID or node:RID; empty: not recorded.';
COMMENT ON COLUMN tool_calls.offerer_name IS 'The process, definition or node that offered it.';
COMMENT ON COLUMN tool_calls.configuration IS 'Identifies how the MCP server was configured; null: no server.';
COMMENT ON COLUMN tool_calls.version IS 'What ran: a hash of a function or a definition, what an MCP server calls itself, or the version of Workbench or a trait.';
COMMENT ON COLUMN tool_calls.caller IS 'Who called, by the id that it had then.';
COMMENT ON COLUMN tool_calls.agent IS 'The agent that called; null: another caller.';
COMMENT ON COLUMN tool_calls.task_id IS 'The task that the agent held then.';
COMMENT ON COLUMN tool_calls.attempt IS 'Its attempt at the task.';
COMMENT ON COLUMN tool_calls.worktree IS 'The worktree of the task.';
COMMENT ON COLUMN tool_calls.commit_id IS 'The commit that merged this worktree.';
COMMENT ON COLUMN tool_calls.conversation_id IS 'The conversation whose model called.';
COMMENT ON COLUMN tool_calls.definition_id IS 'Id of the caller''s definition.';
COMMENT ON COLUMN tool_calls.definition_hash IS 'Hash of the definition''s files then.';
COMMENT ON COLUMN tool_calls.origin_node IS 'The node of a KOI network that sent the call.';
COMMENT ON COLUMN tool_calls.origin_call IS 'The id that the call has there.';
COMMENT ON COLUMN tool_calls.origin_caller IS 'Who called there.';
COMMENT ON COLUMN tool_calls.state IS 'waiting, running, completed, failed, cancelled or interrupted.';
COMMENT ON COLUMN tool_calls.error_code IS 'Code of the error.';
COMMENT ON COLUMN tool_calls.approval_id IS 'The approval, if a person was asked first.';
COMMENT ON COLUMN tool_calls.requested_at IS 'When it was called.';
COMMENT ON COLUMN tool_calls.started_at IS 'When it began to run; null: it was refused before.';
COMMENT ON COLUMN tool_calls.ended_at IS 'When it ended.';
COMMENT ON COLUMN tool_calls.wait_seconds IS 'Seconds from the call to the start: how long a person took.';
COMMENT ON COLUMN tool_calls.seconds IS 'Seconds from the start to the end.';
COMMENT ON COLUMN tool_calls.progress IS 'How far it was when it last said so; null: it has not.';
COMMENT ON COLUMN tool_calls.progress_total IS 'How much there is to do; null: unknown.';
COMMENT ON COLUMN tool_calls.progress_message IS 'What it was doing then.';
COMMENT ON COLUMN tool_calls.input_tokens IS 'Tokens that a model behind the tool has read; null: no model, or unknown.';
COMMENT ON COLUMN tool_calls.output_tokens IS 'Tokens that it has written.';
COMMENT ON COLUMN tool_calls.cost_usd IS 'What it has cost, in US dollars; null: unknown.';
COMMENT ON COLUMN tool_calls.arguments IS 'Arguments, as JSON; null if longer than 20,000 characters: get_tool_call has them.';
COMMENT ON COLUMN tool_calls.result IS 'The result, as JSON; null if longer than 20,000 characters.';

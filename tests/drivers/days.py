"""The lines that programs write on a normal day, shortened, and some others of theirs."""

from __future__ import annotations

from typing import Any

RESETS = 1_795_314_355
INIT = {"type": "system", "subtype": "init", "session_id": "6", "tools": [], "apiKeySource": "ANTHROPIC_API_KEY"}
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "num_turns": 6,
    "result": "final\nanswer",
    "terminal_reason": "completed",
    "total_cost_usd": 0.9,
    "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 1},
    "model_usage_since_last_result": {"claude-test": {"costUSD": 0.03}},
}
SYNTHETIC = {"type": "assistant", "message": {"model": "<synthetic>", "content": [{"type": "text", "text": "Oh."}]}}


def retry(status: int | None, error: str = "unknown") -> dict[str, Any]:
    """Claude Code tries again."""
    return {"type": "system", "subtype": "api_retry", "attempt": 1, "error_status": status, "error": error}


def failed(text: str, **more: Any) -> dict[str, Any]:
    """The result of a run of Claude Code that failed, which may call itself a success."""
    return RESULT | {"is_error": True, "result": text, "terminal_reason": "api_error"} | more


CLAUDE = [
    INIT,
    {"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": "?"}]}},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "I look."}]}},
    *(
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": number, "name": name, "input": {}}]}}
        for number, name in (("t1", "Bash"), ("t2", "mcp__wb__echo"))
    ),
    *(
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": number, **result}]}}
        for number, result in (
            ("t2", {"content": [{"type": "text", "text": "1"}]}),
            ("t1", {"content": "Exit code 3\nhi", "is_error": True}),
            ("t9", {"content": "of no call"}),
        )
    ),
    retry(529, "overloaded"),
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "final\nanswer"}]}},
    RESULT,
]
CODEX = [
    {"type": "thread.started", "thread_id": "01a2"},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "?"}},
    {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "I look."}},
    {"type": "item.started", "item": {"id": "t1", "type": "command_execution", "command": "ls", "exit_code": None}},
    {"type": "item.started", "item": {"id": "t2", "type": "mcp_tool_call", "server": "wb", "tool": "echo"}},
    {
        "type": "item.completed",
        "item": {"id": "t2", "type": "mcp_tool_call", "server": "wb", "tool": "echo", "result": 1},
    },
    {
        "type": "item.completed",
        "item": {
            "id": "t1",
            "type": "command_execution",
            "aggregated_output": "hi",
            "exit_code": 3,
            "status": "failed",
        },
    },
    {"type": "error", "message": "Reconnecting... 1/5 (unexpected status 503 Service Unavailable)"},
    {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "final\nanswer"}},
    {"type": "turn.completed", "usage": {"input_tokens": 6, "cached_input_tokens": 1, "output_tokens": 2}},
]
GEMINI = [
    {"type": "init", "session_id": "7899", "model": "auto"},
    {"type": "message", "role": "user", "content": "Do it."},
    {"type": "message", "role": "assistant", "content": "I ", "delta": True},
    {"type": "message", "role": "assistant", "content": "look.", "delta": True},
    {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t1", "parameters": {}},
    {"type": "tool_use", "tool_name": "mcp_wb_echo", "tool_id": "t2", "parameters": {"x": "1"}},
    {"type": "tool_result", "tool_id": "t2", "status": "success", "output": "1"},
    {"type": "tool_result", "tool_id": "t1", "status": "error", "output": "", "error": {"message": "no"}},
    {"type": "message", "role": "assistant", "content": "final\n", "delta": True},
    {"type": "message", "role": "assistant", "content": "answer", "delta": True},
    {"type": "result", "status": "success", "stats": {"input_tokens": 6, "output_tokens": 2, "cached": 1}},
]


def update(what: str, **fields: Any) -> dict[str, Any]:
    """An agent that speaks the Agent Client Protocol tells of something."""
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"update": {"sessionUpdate": what, **fields}}}


def answer(call: int, **result: Any) -> dict[str, Any]:
    """It answers a call."""
    return {"jsonrpc": "2.0", "id": call, "result": result}


def chunk(text: str) -> dict[str, Any]:
    """It says a text."""
    return update("agent_message_chunk", content={"type": "text", "text": text})


ACP = [
    answer(0, protocolVersion=1, agentCapabilities={}),
    answer(1, sessionId="ses_1"),
    chunk("I "),
    chunk("look."),
    update("tool_call", toolCallId="t1", title="ls", kind="execute", status="in_progress", rawInput={"command": "ls"}),
    update("tool_call", toolCallId="t2", title="mcp__wb__echo", status="pending"),
    update("tool_call_update", toolCallId="t2", status="completed", rawOutput="1"),
    update(
        "tool_call_update",
        toolCallId="t1",
        status="failed",
        content=[{"type": "content", "content": {"type": "text", "text": "Exit code 3"}}],
    ),
    update("tool_call_update", toolCallId="t9", status="failed"),
    chunk("final\n"),
    chunk("answer"),
    update("usage_update", used=8, size=9, cost={"amount": 0.03, "currency": "USD"}),
    answer(2, stopReason="end_turn", usage={"inputTokens": 5, "cachedReadTokens": 1, "outputTokens": 2}),
]
DAYS = {"claude": CLAUDE, "codex": CODEX, "gemini": GEMINI, "acp": ACP}

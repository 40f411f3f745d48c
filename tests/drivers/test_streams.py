"""What the programs say while they work, and how they end; the lines are theirs, shortened."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.drivers import DRIVERS, ProgramStream, ProgramUsage, Start, codex
from workbench.drivers.stream import NOTE_LIMIT, VALUE_LIMIT, Note, ToolEnd, ToolStart
from workbench.rules.failures import FailureKind

NOW = 1_795_000_000.0
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


def stream(program: str) -> ProgramStream:
    """A stream of a program at a fixed time."""
    of = DRIVERS[program].stream(servers=("workbench", "wb"), clock=lambda: NOW)
    of.begin(Start("Do it.", "/work"))
    return of


def heard(of: ProgramStream, lines: Sequence[Any]) -> list[Any]:
    """The events of some lines, of which texts are as they are."""
    return [event for line in lines for event in of.hear(line if isinstance(line, str) else json.dumps(line))]


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


@pytest.mark.parametrize("program", DAYS)
def test_a_normal_day_is_told_as_it_goes_and_ends_with_the_whole_answer(program: str) -> None:
    of = stream(program)
    events = heard(of, DAYS[program])
    starts = [(event.call, event.server) for event in events if isinstance(event, ToolStart)]
    ends = [(event.call, event.is_error) for event in events if isinstance(event, ToolEnd)]
    notes = [event.text for event in events if isinstance(event, Note)]
    assert (starts, ends) == ([("t1", None), ("t2", "wb")], [("t2", False), ("t1", True)])
    assert next(event.tool for event in events if isinstance(event, ToolStart) and event.server) == "echo"
    assert notes[0] == "I look."
    assert "\n".join(notes).endswith("final\nanswer")
    assert (of.end(0), of.answer, of.open) == (None, "final\nanswer", {})
    assert of.session == {"claude": "6", "codex": "01a2", "gemini": "7899", "acp": "ses_1"}[program]
    cost = {"claude": 0.03, "acp": 0.03}.get(program)
    assert of.usage == ProgramUsage(6, 1, 2, cost, is_of_session=program == "codex")


@pytest.mark.parametrize(
    ("program", "lines", "status", "kind", "until"),
    [
        ("claude", [INIT, retry(401, "authentication_failed")], -15, "auth", None),
        ("claude", [failed("Not logged in · Please run /login")], 1, "auth", None),
        ("claude", [failed("Failed to authenticate. API Error: 403 no")], 1, "auth", None),
        ("claude", [failed("API Error: 402 The budget is used up.", api_error_status=402)], 1, "refused", None),
        ("claude", [INIT, retry(None), failed("API Error: Unable to connect to API")], 1, "refused", None),
        (
            "claude",
            [
                {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": RESETS}},
                SYNTHETIC | {"error": "rate_limit", "api_error_status": 429},
                failed("You've hit your 5-hour limit · resets 2:25am (UTC)"),
            ],
            1,
            "limit",
            RESETS,
        ),
        ("claude", [retry(529, "overloaded"), failed("API Error: 529 overloaded_error")], 1, "overloaded", None),
        ("claude", [failed("Prompt is too long", terminal_reason="prompt_too_long")], 1, "context", None),
        ("claude", [failed("", subtype="error_max_turns", terminal_reason="max_turns")], 1, "turns", None),
        ("claude", [INIT], 0, "crashed", None),
        ("claude", [INIT, RESULT | {"terminal_reason": "aborted_tools", "result": ""}], 0, "crashed", None),
        ("claude", [INIT], -9, "crashed", None),
        ("codex", [{"type": "error", "message": "Reconnecting... 1/5 (status 401 Unauthorized)"}], -15, "auth", None),
        ("codex", [{"type": "turn.failed", "error": {"message": "You've hit your usage limit."}}], 1, "limit", None),
        ("codex", [{"type": "turn.failed", "error": {"message": "last status: 429"}}], 1, "limit", None),
        ("codex", [{"type": "turn.failed", "error": {"message": "We're at capacity."}}], 1, "overloaded", None),
        ("codex", [{"type": "turn.failed", "error": {"message": "unexpected status 500"}}], 1, "overloaded", None),
        ("codex", [{"type": "error", "message": "stream error: waiting for network"}], -9, "refused", None),
        ("codex", [{"type": "turn.failed", "error": {"message": "Codex ran out of room"}}], 1, "context", None),
        ("codex", [{"type": "turn.failed", "error": {"message": "unexpected status 404"}}], 1, "refused", None),
        ("codex", CODEX[:4], 0, "crashed", None),
        ("gemini", [], 41, "auth", None),
        ("gemini", [], 145, "auth", None),
        ("gemini", [], 247, "overloaded", None),
        ("gemini", [], 53, "turns", None),
        ("gemini", GEMINI[:4], 0, "crashed", None),
        (
            "gemini",
            [{"type": "result", "status": "error", "error": {"message": "The input token count exceeds the limit"}}],
            144,
            "context",
            None,
        ),
        (
            "gemini",
            [{"type": "result", "status": "error", "error": {"message": "Suggested retry after 3600s."}}],
            173,
            "limit",
            NOW + 3_600,
        ),
    ],
)
def test_the_end_of_a_run_is_classified(
    program: str, lines: list[Any], status: int, kind: str, until: float | None
) -> None:
    of = stream(program)
    heard(of, lines)
    failure = of.end(status)
    assert failure is not None
    assert (failure.kind, failure.until) == (FailureKind(kind), until)
    assert failure.message
    assert of.is_hopeless == (kind == "auth" and status < 0), "with a key that is refused, more tries cannot help"


def test_gemini_tells_of_its_retries_on_standard_error() -> None:
    of = stream("gemini")
    assert [*of.hear_error("Attempt 1 failed with status 503. Retrying…")]
    assert (of.trouble and of.trouble.kind) is FailureKind.OVERLOADED
    [*of.hear_error("TypeError: fetch failed")]
    assert (of.trouble and of.trouble.kind) is FailureKind.REFUSED
    assert [*of.hear_error("Ripgrep is not available.")] == []


def test_the_limit_of_codex_is_in_the_file_of_its_conversation() -> None:
    limits = {
        "primary": {"used_percent": 40.0, "resets_at": 1},
        "secondary": {"used_percent": 100.0, "resets_at": RESETS},
    }
    line = json.dumps({"payload": {"type": "token_count", "rate_limits": limits}})
    assert codex.limit_of_session(f"{{}}\n{line}\n{{}}\n") == RESETS
    assert codex.limit_of_session('{"rate_limits"') is None


@pytest.mark.parametrize("program", DAYS)
@given(
    line=st.one_of(
        st.text(),
        st.recursive(
            st.none() | st.text(),
            lambda inner: st.dictionaries(
                st.sampled_from(
                    [
                        *("type", "message", "item", "content", "error", "id", "result", "stats", "usage", "status"),
                        *("method", "params", "update", "options", "toolCall"),
                    ]
                ),
                inner,
            ),
        ).map(json.dumps),
        st.sampled_from([json.dumps(one) for day in DAYS.values() for one in day]),
    )
)
def test_no_line_breaks_a_stream(program: str, line: str) -> None:
    of = stream(program)
    [*of.hear(line), *of.hear_error(line)]
    of.end(0)


@pytest.mark.parametrize("program", DAYS)
def test_what_is_kept_of_a_run_is_bounded(program: str) -> None:
    of, huge = stream(program), "x" * 900_000
    lines = [json.dumps(one).replace("I look.", huge).replace('"Exit code 3', f'"{huge}') for one in DAYS[program]]
    tracemalloc.start()
    for _ in range(20):
        for event in heard(of, lines):
            assert len(str(event)) < NOTE_LIMIT + VALUE_LIMIT + 1_000
    assert tracemalloc.get_traced_memory()[1] < 30_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("program", DAYS)
def test_a_hundred_events_take_little_of_a_processor(program: str) -> None:
    of, lines = stream(program), [json.dumps(one) for one in DAYS[program]] * 10
    began = time.process_time()
    for line in lines:
        [*of.hear(line)]
    assert time.process_time() - began < 0.03

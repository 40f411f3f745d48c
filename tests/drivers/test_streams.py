"""What the programs say while they work, and how they end; the lines are theirs, shortened."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.days import CODEX, DAYS, GEMINI, INIT, RESETS, RESULT, SYNTHETIC, failed, retry
from workbench.drivers import DRIVERS, ProgramStream, ProgramUsage, Start, codex
from workbench.drivers.stream import NOTE_LIMIT, VALUE_LIMIT, Note, ToolEnd, ToolStart
from workbench.rules.failures import FailureKind

NOW = 1_795_000_000.0


def stream(program: str) -> ProgramStream:
    """A stream of a program at a fixed time."""
    of = DRIVERS[program].stream(servers=("workbench", "wb"), clock=lambda: NOW)
    of.begin(Start("Do it.", "/work"))
    return of


def heard(of: ProgramStream, lines: Sequence[Any]) -> list[Any]:
    """The events of some lines, of which texts are as they are."""
    return [event for line in lines for event in of.hear(line if isinstance(line, str) else json.dumps(line))]


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

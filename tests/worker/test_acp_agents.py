"""Agents that speak the Agent Client Protocol: Gemini CLI and opencode, where they are installed, and one for tests."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from docs.generator import ROOT
from tests.code_blocks import blocks_in
from tests.worker import acp_agent
from tests.worker.fake_model import Fault, answering
from tests.worker.runner import BegunListener, Runner
from tests.worker.test_real_programs import PROGRAMS
from workbench.drivers.stream import CONTINUED, ToolEnd, ToolStart
from workbench.rules import profile
from workbench.rules.failures import FailureKind
from workbench.rules.profile import Profile
from workbench.state.settings import shipped
from workbench.worker import attempt, listening

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

Asked = Callable[[str], Runner]


@pytest.fixture
def asked(run: Runner) -> Asked:
    """A runner of an agent that does something with its prompt."""

    def asked(how: str) -> Runner:
        command = [sys.executable, "-S", acp_agent.__file__, how]
        run.profile = Profile(name="p", summary="An agent.", command=command, driver="acp", prompt="{description}")
        return run

    return asked


async def test_an_agent_is_given_its_prompt_and_heard_while_it_works(asked: Asked) -> None:
    run = asked("day")
    outcome = await run(None, "Do it.")
    assert outcome.result == {"answer": "Chose o-allow_once.\nGot -32601."}, outcome.error
    told = ["[plan: Do it.]", "I look.", "[execute] ls", "[workbench: get_task] mcp__workbench__get_task"]
    assert run.lines == [*told, *outcome.result["answer"].splitlines()]
    assert [(call.call, getattr(call, "server", None)) for call in run.calls if isinstance(call, ToolStart)] == [
        ("t1", None),
        ("t2", "workbench"),
    ]
    assert [(call.result, call.is_error) for call in run.calls if isinstance(call, ToolEnd)] == [
        ("no", True),
        ("", False),
    ]
    assert outcome.usage is not None
    assert (outcome.usage.input_tokens, outcome.usage.cached_tokens, outcome.usage.cost_usd) == (6, 1, 0.5)


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ('{"error": {"code": -32000, "message": "Authentication required"}}', "auth"),
        ('{"error": {"code": 429, "message": "Try again in 20s"}}', "limit"),
        (
            '{"error": {"code": -32603, "message": "Internal error", "data": {"details": "529 overloaded"}}}',
            "overloaded",
        ),
        ('{"error": {"code": 400, "message": "prompt is too long"}}', "context"),
        ('{"error": "?"}', "failed"),
        ('{"result": 5}', "failed"),
        ("max_turn_requests", "turns"),
        ("max_tokens", "context"),
        ("end_turn", "failed"),
        ("newer", "failed"),
        ("nameless", "failed"),
    ],
)
async def test_the_end_of_a_prompt_is_classified(asked: Asked, how: str, kind: str) -> None:
    outcome = await asked(how)(None)
    assert outcome.failure is not None, outcome
    assert outcome.failure.kind is FailureKind(kind), outcome.failure
    assert (outcome.failure.until is not None) == (kind == "limit")


async def test_an_agent_that_does_not_exit_is_ended_and_has_done_its_work(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "LEAVE_SECONDS", 0.1)
    assert (await asked("stays")(None)).result == {"answer": "Done."}


@pytest.mark.long
@pytest.mark.parametrize("how", ["hangs", "deaf"])
async def test_an_agent_that_says_nothing_or_does_not_listen_is_cancelled(
    asked: Asked, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "Listener", BegunListener)
    run = asked(how)
    run.silence, run.grace = 3.0, 5.0 if how == "hangs" else 0.3
    outcome = await run(None)
    assert (outcome.failure and outcome.failure.kind) is FailureKind.SILENT
    assert (run.place / "cancelled").exists() == (how == "hangs")


async def test_the_next_attempt_continues_the_conversation_or_is_not_told_that_it_does(asked: Asked) -> None:
    for how in ("day", "forgets"):
        run = asked("max_tokens".replace("tokens", "turn_requests"))
        run.sessions = run.scratch.parent / "sessions"
        await run(None)
        run.lines.clear()
        await asked(how)(None, "Do it.")
        assert (f"[plan: {CONTINUED}]" in run.lines) == (how == "day"), run.lines
        assert not any("Replayed" in line for line in run.lines)


def example() -> Profile:
    """The profile of the manual."""
    [block] = blocks_in(ROOT / "docs" / "agents.md", "yaml")
    return profile.parse("opencode", block.code)


GEMINI = {
    "summary": "Gemini CLI by its other way.",
    "command": ["gemini", "--acp"],
    "driver": "acp",
    "prompt": "{description}",
    "files": {
        ".gemini/settings.json": yaml.safe_load(shipped("data", "profiles", "gemini.yaml").read_text("utf-8"))["files"][
            ".gemini/settings.json"
        ]
    },
}


@pytest.mark.node
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["gemini", "opencode"])
async def test_a_real_agent_does_a_task_and_tells_when_its_key_is_refused(
    run: Runner, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    run.profile = Profile(name=name, **GEMINI) if name == "gemini" else example()
    with answering(("shell", "echo hi > hi.txt"), ("text", "All of it.\nReally.")) as model:
        variables: dict[str, Any] = {
            "gemini": {"GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_API_KEY": "none", "GEMINI_MODEL": "gemini-2.5-pro"},
            "opencode": {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-none"},
        }[name]
        outcome = await run(None, "DO-IT", **variables)
        assert outcome.result == {"answer": "All of it.\nReally."}, (outcome.error, run.lines)
        assert (run.place / "hi.txt").read_text() == "hi\n"
        assert [type(call) for call in run.calls] == [ToolStart, ToolEnd]
        assert any("DO-IT" in prompt for prompt in model.prompts)
        bodies = {
            "gemini": '{"error": {"code": 401, "status": "UNAUTHENTICATED", "message": "API key not valid."}}',
            "opencode": '{"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}',
        }
        model.fault = Fault(401, bodies[name])
        outcome = await run(None, "DO-IT", **variables)
    assert (outcome.failure and outcome.failure.kind) is FailureKind.AUTH, outcome

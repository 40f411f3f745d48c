"""Claude Code, Codex and Gemini CLI when their provider fails: each failure is told by its kind, and what follows.

npm ci --prefix tests/worker/programs
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import psutil
import pytest
import tomli_w

from tests import given
from tests.conftest import Served, admitted
from tests.services.processes.running import serving
from tests.worker.fake_model import FakeModel, Fault, answering
from tests.worker.test_real_programs import _installed_programs
from tests.worker.working import working
from workbench.rules import profile
from workbench.rules.failures import FailureKind
from workbench.services import holds
from workbench.services.agents.rows import require_agent
from workbench.state.settings import Settings, shipped

__all__ = ["_installed_programs"]
pytestmark = [pytest.mark.anyio, pytest.mark.node, pytest.mark.long, pytest.mark.timeout(300)]

NAMES = ("claude", "codex", "gemini")
DONE = ("text", "All is done.")
CODEX_FILE = ".codex/config.toml"


def error(name: str, status: int, kind: str, message: str, **headers: str) -> Fault:
    """An error in the form of the program's provider."""
    bodies = {
        "claude": {"type": "error", "error": {"type": kind, "message": message}},
        "codex": {"error": {"type": kind, "code": kind, "message": message}},
        "gemini": {"error": {"code": status, "status": kind, "message": message}},
    }
    return Fault(status, json.dumps(bodies[name]), tuple(headers.items()))


def for_test(name: str, model: FakeModel) -> dict[str, Any]:
    """The profile of a program, and its variables, that lead it to the model."""
    shipped_one = profile.parse(name, shipped("data", "profiles", f"{name}.yaml").read_text("utf-8"))
    prompt = shipped("data", "profiles", "prompt.md").read_text("utf-8")
    files = dict(shipped_one.files)
    if name == "codex":
        provider = {"name": "wb", "base_url": f"{model.url}/v1", "env_key": "CODEX_API_KEY", "wire_api": "responses"}
        limits = {"supports_websockets": False, "request_max_retries": 1, "stream_max_retries": 1}
        chosen = tomli_w.dumps({"model": "fake", "model_provider": "wb"})
        files[CODEX_FILE] = chosen + files[CODEX_FILE] + tomli_w.dumps({"model_providers": {"wb": provider | limits}})
    variables = {
        "claude": {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-none"},
        "codex": {"CODEX_API_KEY": "sk-none"},
        "gemini": {"GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_API_KEY": "none", "GEMINI_MODEL": "gemini-2.5-pro"},
    }[name]
    return {"profile": shipped_one.model_copy(update={"prompt": prompt, "files": files}), "environment": variables}


@asynccontextmanager
async def at_work(settings: Settings, name: str, model: FakeModel, **more: Any) -> AsyncIterator[Served]:
    """A project in which an agent works with a program."""
    chosen = settings.model_copy(update={"hold_base_seconds": 1.0, "retry_base_seconds": 1.0})
    async with serving(chosen) as served:
        agent = await admitted(served.workbench, "ada")
        how = for_test(name, model)

        def enlist(tx: Any) -> None:
            holds.enlist(tx, require_agent(tx, "ada")["id"], name, f"{name}-test")

        await served.workbench.store.write(enlist, actor="test")
        sessions = settings.home / "agent_sessions"
        async with working(served, agent.token, None, sessions=sessions, **how, **more):
            yield served


async def outcome(served: Served, **more: Any) -> dict[str, Any]:
    """A new task, once it is completed or failed."""
    task_id = await given.task(served.workbench, description="DO-IT", **more)
    return await given.reached(served.workbench, task_id, "completed", "failed")


@pytest.mark.parametrize("name", NAMES)
async def test_a_key_that_is_refused_ends_the_program_early_and_asks(settings: Settings, name: str) -> None:
    with answering(DONE) as model:
        message = {"claude": "invalid x-api-key", "codex": "Incorrect API key", "gemini": "API key not valid."}[name]
        kind = {"claude": "authentication_error", "codex": "invalid_api_key", "gemini": "UNAUTHENTICATED"}[name]
        model.fault = error(name, 401, kind, message)
        async with at_work(settings, name, model) as served:
            task_id = await given.task(served.workbench, max_retries=0)
            while not (asked := (await served.workbench.call("list_approvals", kind="failure"))["approvals"]):
                await asyncio.sleep(0.05)
            assert asked[0]["payload"]["failure"] == FailureKind.AUTH
            assert len(model.requests) <= 4, [path for path, _ in model.requests]
            model.fault = None
            await served.workbench.call("approve", approval_id=asked[0]["id"])
            task = await given.reached(served.workbench, task_id, "completed", "failed")
    assert (task["status"], task["result_data"]) == ("completed", {"answer": "All is done."})
    assert [attempt["error_class"] for attempt in task["attempts"]] == ["auth", None]


@pytest.mark.parametrize("name", NAMES)
async def test_an_overloaded_provider_uses_up_no_retry(settings: Settings, name: str) -> None:
    with answering(DONE) as model:
        kind = {"claude": "overloaded_error", "codex": "server_error", "gemini": "UNAVAILABLE"}[name]
        model.fault = error(name, 529 if name == "claude" else 503, kind, "Overloaded")
        async with at_work(settings, name, model) as served:
            task_id = await given.task(served.workbench, max_retries=0)
            while not (found := (await served.workbench.call("list_holds"))["holds"]):
                await asyncio.sleep(0.05)
            assert found[0]["failure"] == FailureKind.OVERLOADED
            model.fault = None
            task = await given.reached(served.workbench, task_id, "completed", "failed")
    assert (task["status"], task["retry_count"]) == ("completed", 0), task


LIMITS = {
    "claude": Fault(429, '{"type": "error", "error": {"type": "rate_limit_error"}}', (("retry-after", "120"),)),
    "codex": Fault(429, '{"error": {"type": "usage_limit_reached", "message": "Limit", "resets_in_seconds": 900}}'),
    "gemini": Fault(
        429,
        json.dumps(
            {
                "error": {
                    "code": 429,
                    "status": "RESOURCE_EXHAUSTED",
                    "message": "You exceeded your current quota.",
                    "details": [
                        {
                            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                            "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}],
                        }
                    ],
                }
            }
        ),
    ),
}


@pytest.mark.parametrize("name", NAMES)
async def test_a_limit_of_the_provider_holds_the_account(settings: Settings, name: str) -> None:
    with answering(DONE) as model:
        model.fault = LIMITS[name]
        async with at_work(settings, name, model) as served:
            task_id = await given.task(served.workbench, max_retries=0)
            while not (found := (await served.workbench.call("list_holds"))["holds"]):
                await asyncio.sleep(0.05)
            task = await served.workbench.call("get_task", task_id=task_id)
    assert (found[0]["scope"], found[0]["failure"]) == (f"account:{name}-test", FailureKind.LIMIT)
    assert (task["status"], task["retry_count"]) == ("pending", 0)


CONTEXT = {
    "claude": (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
    "codex": (400, "context_length_exceeded", "Your input exceeds the context window of this model."),
    "gemini": (
        400,
        "INVALID_ARGUMENT",
        "The input token count (1100000) exceeds the maximum number of tokens allowed.",
    ),
}


@pytest.mark.parametrize("name", NAMES)
async def test_the_next_attempt_is_told_that_the_context_was_too_long(settings: Settings, name: str) -> None:
    with answering(DONE) as model:
        model.fault = error(name, *CONTEXT[name])
        async with at_work(settings, name, model) as served:
            task_id = await given.task(served.workbench, max_retries=1, description="DO-IT")
            while not (await served.workbench.call("get_task", task_id=task_id))["error_message"]:
                await asyncio.sleep(0.02)
            model.fault = None
            task = await given.reached(served.workbench, task_id, "completed", "failed")
    assert [attempt["error_class"] for attempt in task["attempts"]] == ["context", None], task
    assert "ended: failed (context)" in model.prompts[-1]
    assert "in smaller steps" in model.prompts[-1]


@pytest.mark.parametrize("name", NAMES)
async def test_a_provider_that_answers_html_fails_the_attempt_with_a_kind(settings: Settings, name: str) -> None:
    with answering(DONE) as model:
        model.fault = Fault(200, "<html>Welcome to the hotel</html>", kind="text/html")
        async with at_work(settings, name, model, silence_seconds=20.0) as served:
            task_id = await given.task(served.workbench, max_retries=0)
            while not (attempts := (await served.workbench.call("get_task", task_id=task_id))["attempts"]) or (
                attempts[0]["ended_at"] is None
            ):
                await asyncio.sleep(0.1)
    assert attempts[0]["error_class"] in set(FailureKind), attempts
    assert "hotel" not in (attempts[0]["error_class"] or "")


@pytest.mark.parametrize("name", NAMES)
async def test_a_provider_that_never_answers_is_given_up(settings: Settings, name: str) -> None:
    with answering(DONE) as model:
        model.fault = Fault(hangs=True)
        async with at_work(settings, name, model, silence_seconds=12.0) as served:
            task = await outcome(served, max_retries=0)
    assert [attempt["error_class"] for attempt in task["attempts"]] == ["silent"], task


@pytest.mark.parametrize("name", NAMES)
async def test_a_program_that_is_killed_goes_on_with_its_conversation(settings: Settings, name: str) -> None:
    with answering(("shell", "echo FIRST-STEP; sleep 1000"), DONE) as model:
        async with at_work(settings, name, model) as served:
            task_id = await given.task(served.workbench, max_retries=1, description="DO-IT")
            while not (calls := (await served.workbench.call("list_tool_calls", task_id=task_id))["calls"]):
                await asyncio.sleep(0.05)
            assert (calls[0]["offered_by"], calls[0]["state"]) == (f"program:{name}", "running")
            model.steps = [DONE]
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):  # it has ended with another
                    if any(name in word for word in process.cmdline()[:2]):
                        process.send_signal(signal.SIGKILL)
            task = await given.reached(served.workbench, task_id, "completed", "failed")
            [call] = (await served.workbench.call("list_tool_calls", task_id=task_id))["calls"]
    assert [attempt["error_class"] for attempt in task["attempts"]] == ["crashed", None], task
    assert call["state"] == "interrupted"
    assert "FIRST-STEP" in model.prompts[-1], "the conversation goes on"
    assert "ended: failed (crashed)" in model.prompts[-1]


async def test_claude_code_that_is_out_of_turns_tells_the_next_attempt(settings: Settings) -> None:
    with answering(*[("shell", "true")] * 9, DONE) as model:
        how = for_test("claude", model)["profile"]
        limited = how.model_copy(update={"command": [*how.command, "--max-turns=2"]})
        async with (
            at_work(settings, "claude", model) as served,
            working(
                served,
                (await admitted(served.workbench, "bob")).token,
                None,
                **for_test("claude", model) | {"profile": limited},
            ),
        ):
            task_id = await given.task(served.workbench, max_retries=0, assigned_agent_id="bob")
            task = await given.reached(served.workbench, task_id, "completed", "failed")
    assert (task["status"], task["attempts"][0]["error_class"]) == ("failed", "turns"), task

"""An agent's program is told messages while it works: in the turn under way, with another one, or instead of it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.drivers.days import CODEX, GEMINI, INIT, RESULT
from tests.services.processes.running import serving
from tests.worker import acp_agent
from tests.worker.fake_model import FakeModel, answering
from tests.worker.runner import Runner
from tests.worker.test_programs_heard import scripted
from tests.worker.test_real_failures import for_test as failing
from tests.worker.test_real_programs import PROGRAMS, for_test
from workbench.rules.profile import Profile
from workbench.state.settings import Settings
from workbench.worker import messages
from workbench.worker.attempt import AttemptOutcome
from workbench.worker.messages import Mailbox

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(120)]

BOUNDARY, INTERRUPTING = "Write CSV, please.", "Stop that: it is enough."


@dataclass
class Inbox:
    """The inbox of an agent whose server is this test."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    seen: list[int] = field(default_factory=list)
    asked: int = 0

    def tell(self, text: str, *, interrupts: bool = False) -> None:
        """Have something for the agent."""
        about = {"id": len(self.messages) + 1, "kind": "message", "sender": "eve", "task_id": None}
        self.messages.append(about | {"text": text, "interrupts": interrupts})
        self.news.set()

    async def deliver(self, after: int = 0, taken: Sequence[int] = (), wait_seconds: float = 0) -> Any:
        """The server's operation."""
        self.seen += taken
        self.asked += 1
        while not (unseen := [one for one in self.messages if one["id"] > after and one["id"] not in self.seen]):
            if not wait_seconds:
                return []
            self.news.clear()
            await self.news.wait()
        return unseen


@pytest.fixture
def inbox(run: Runner) -> Inbox:
    """The inbox of the agent that runs."""
    inbox = Inbox()
    run.mailbox = Mailbox(inbox.deliver)
    return inbox


REPLAY = {"type": "user", "isReplay": True, "uuid": "00000000-0000-4000-8000-000000000001"}


async def test_a_program_that_ended_its_turn_with_a_message_in_its_pipe_gets_another_turn(
    run: Runner, inbox: Inbox
) -> None:
    inbox.tell(BOUNDARY)
    first, second = (RESULT | {"result": text, "usage": {"output_tokens": 2}} for text in ("first", "second"))
    turns = 'head -n 2 | sed "s|^|> |"; head -n 2 "$out"; sleep 0.1; tail -n 3 "$out"; cat'
    outcome = await scripted(run, turns, INIT, first, INIT, REPLAY, second)(None, "Do it.")
    assert outcome.result == {"answer": "second"}, outcome
    prompt, message = [json.loads(line[2:]) for line in run.lines if line.startswith("> ")]
    assert "Do it." in prompt["message"]["content"][0]["text"]
    assert BOUNDARY in message["message"]["content"][0]["text"]
    assert (inbox.seen, outcome.usage and outcome.usage.output_tokens) == ([1], 4)


async def test_an_agent_that_waits_for_messages_itself_is_not_told_twice(
    run: Runner, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "PAUSE_SECONDS", 0.02)
    reads = {"type": "tool_use", "id": "t1", "name": "mcp__workbench__read_messages", "input": {}}
    gets = {"type": "tool_result", "tool_use_id": "t1", "content": BOUNDARY}
    lines = [
        INIT,
        *({"type": kind, "message": {"content": [block]}} for kind, block in (("assistant", reads), ("user", gets))),
    ]
    waits = 'until [ -e go ]; do sleep 0.02; done; tail -n 2 "$out"; cat > got'
    attempt = asyncio.create_task(scripted(run, f'head -n 1; head -n 2 "$out"; {waits}', *lines, RESULT)(None))
    await run.has_output.wait()
    inbox.tell(BOUNDARY)
    asked = inbox.asked
    while inbox.asked < asked + 3:
        await asyncio.sleep(0.01)
    inbox.seen.append(1)  # the server's answer to its call
    (run.place / "go").touch()
    assert (await attempt).ok
    assert (run.place / "got").read_text() == ""


async def told_while_it_runs(run: Runner, inbox: Inbox) -> AttemptOutcome:
    """The outcome of an attempt that is interrupted by a message when its program has said something."""
    attempt = asyncio.create_task(run(None, "Do it."))
    await run.has_output.wait()
    inbox.tell(BOUNDARY, interrupts=True)
    return await attempt


@pytest.mark.parametrize("interrupts", [False, True])
async def test_a_program_that_is_given_all_at_once_continues_its_conversation_with_a_message(
    run: Runner, inbox: Inbox, interrupts: bool
) -> None:
    keeps = "mkdir -p ~/.gemini/tmp/x/chats; echo begun > ~/.gemini/tmp/x/chats/session-1-7899.jsonl"
    ends = "exec tail -f /dev/null" if interrupts else 'cat "$out"'
    script = (
        f'case "$*" in *--session-file=*) cat; echo; cat "$out";; *) {keeps}; head -n 1 "$out"; echo hi; {ends};; esac'
    )
    scripted(run, script, *GEMINI, driver="gemini")
    run.profile = run.profile.model_copy(update={"program": "gemini"})
    if interrupts:
        outcome = await told_while_it_runs(run, inbox)
    else:
        inbox.tell(BOUNDARY)
        outcome = await run(None, "Do it.")
    assert outcome.result == {"answer": "final\nanswer"}, outcome
    told = run.lines[run.lines.index("[told: message 1]") :]
    assert told[1:3] == ["Message 1 from eve:", BOUNDARY], "it knows the rest"
    assert inbox.seen == [1]
    assert outcome.usage is not None
    assert outcome.usage.output_tokens == (2 if interrupts else 4)


async def test_a_program_without_a_conversation_begins_anew_with_what_interrupts_it(run: Runner, inbox: Inbox) -> None:
    began = run.place / "began"
    script = f'[ -e {began} ] && {{ cat; echo; cat "$out"; exit; }}; touch {began}; echo hi; exec tail -f /dev/null'
    scripted(run, script, *CODEX, driver="codex")
    assert (await told_while_it_runs(run, inbox)).ok
    assert run.lines.index("Do it.") < run.lines.index(BOUNDARY)


@pytest.mark.parametrize("when", ["before", "meanwhile", "instead"])
async def test_an_agent_that_speaks_acp_is_prompted_with_a_message(run: Runner, inbox: Inbox, when: str) -> None:
    command = [sys.executable, "-S", acp_agent.__file__, "obeys" if when == "instead" else "day"]
    run.profile = Profile(
        name="p", summary="An agent.", command=command, driver="acp", prompt="{description}", stdin="prompt"
    )
    if when == "before":
        inbox.tell(BOUNDARY)
    attempt = asyncio.create_task(run(None, "Do it."))
    await run.has_output.wait()
    if when != "before":
        inbox.tell(BOUNDARY, interrupts=when == "instead")
    outcome = await attempt
    assert outcome.ok, outcome
    prompts = [line.removeprefix("[plan: ").rstrip("]") for line in run.lines if line.startswith("[plan: ")]
    about = "Message 1 from eve:"
    assert (prompts, inbox.seen) == ([about] if when == "before" else ["Do it.", about], [1])


@pytest.mark.node
@pytest.mark.parametrize("name", ["codex", "gemini"])
async def test_a_real_program_that_is_interrupted_continues_its_own_conversation(
    run: Runner, inbox: Inbox, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    with answering(("shell", "echo begun > begun; tail -f /dev/null"), ("text", "It is CSV.")) as model:
        model.scripts[BOUNDARY] = [("text", "It is CSV.")]
        how = failing(name, model)
        files = {
            path: text.replace("required = true", "required = false") for path, text in how["profile"].files.items()
        }
        run.profile = how["profile"].model_copy(update={"files": files})
        attempt = asyncio.create_task(run(None, "DO-IT", **how["environment"]))
        while not (run.place / "begun").exists():
            await asyncio.sleep(0.05)
        inbox.tell(BOUNDARY, interrupts=True)
        outcome = await attempt
    assert outcome.result == {"answer": "It is CSV."}, (outcome, run.lines)
    assert inbox.seen == [1]
    last = json.dumps([request for path, request in model.requests if "count" not in path][-1])
    assert ("DO-IT" in last, BOUNDARY in last) == (True, True)
    assert last.count("DO-IT") == 1, "the conversation goes on"


def requests(model: FakeModel) -> list[str]:
    """What is new in each request of the agent's conversation."""
    asked = [request for path, request in model.requests if "count" not in path and request.get("tools")]
    return [json.dumps(request["messages"][-2:]) for request in asked]


@pytest.mark.node
async def test_a_message_reaches_a_running_claude_code_at_its_next_tool_boundary_or_interrupts_it(
    settings: Settings, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    if shutil.which("claude") is None:
        pytest.skip("claude is not installed")
    steps = [("shell", "until [ -e go ]; do sleep 0.1; done"), ("shell", "tail -f /dev/null"), ("text", "It is CSV.")]
    with answering(*steps) as model:
        address = for_test(settings, "claude", model)
        async with serving(settings.model_copy(update={"heartbeat_seconds": 1.0})) as served:
            call = served.workbench.call
            place = Path((await call("create_worktree", name="lab"))["path"])
            task = (await call("create_task", title="t", persona_id="implementer", description="DO-IT"))["id"]
            where = {"name": "ada", "assigned_worktree": "lab", "persona_id": "implementer"}
            environment = address | {"ANTHROPIC_API_KEY": "none"}
            await call("spawn_agent", profile="claude", environment=environment, **where)

            async def logged(text: str) -> Any:
                lines = (await call("get_task_logs", task_id=task))["lines"]
                return any(text in line["message"] for line in lines)

            async def state(message: int) -> str:
                messages = (await call("list_messages"))["messages"]
                return next(str(one["state"]) for one in messages if one["id"] == message)

            async def is_seen() -> bool:
                return await state(first) == "seen"

            await given.until(lambda: logged("[Bash] until"))
            first = (await call("tell", agent_id="ada", text=BOUNDARY))["id"]
            await given.until(lambda: logged(f"[told: message {first}]"))
            assert await state(first) == "queued", "its tool runs"
            (place / "go").touch()
            await given.until(is_seen)
            await given.until(lambda: logged("[Bash] tail"))
            second = (await call("tell", agent_id="ada", text=INTERRUPTING, interrupt=True))["id"]
            done = await given.reached(served.workbench, task, "completed", "failed")
            states = [await state(message) for message in (first, second)]
            costs = (await call("list_costs", by="attempt"))["costs"]
    assert (done["status"], done["result_data"]) == ("completed", {"answer": "It is CSV."}), done
    assert len(done["attempts"]) == 1
    begun, at_boundary, interrupted = requests(model)
    assert "DO-IT" in begun
    assert BOUNDARY in at_boundary
    assert INTERRUPTING in interrupted
    assert states == ["acted", "acted"]
    assert [(row["requests"], row["output_tokens"]) for row in costs] == [(3, 3)]

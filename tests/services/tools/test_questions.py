"""Questions of MCP servers in the inbox: answered, declined, cancelled, too late, and withdrawn with their call."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.services.tools.conftest import CHAT, READING, Shelf, begin
from tests.upstream.servers import SERVER
from workbench.app import Workbench
from workbench.ops import OPERATOR, Ctx
from workbench.rules.tools.surroundings import Surroundings
from workbench.services.tools import calls, questions
from workbench.services.tools.tool import ToolInvocation, ToolOutcome, ToolScope
from workbench.state.settings import Settings
from workbench.store.queries import Query
from workbench.upstream.call import ServerQuestion

pytestmark = pytest.mark.anyio

FORM = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "oneOf": [{"const": "r", "title": "red"}, {"const": "b", "title": "blue"}]},
        "coats": {"type": "integer", "minimum": 1},
        "api_key": {"type": "string"},
    },
    "required": ["colour"],
}
Run = Callable[[Ctx, ToolInvocation], Awaitable[ToolOutcome]]


def asking(question: ServerQuestion) -> Run:
    """A tool that asks, and returns what it was told."""

    async def run(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        reply = await questions.ask(ctx, call, "hub__paint", "hub", question)
        return ToolOutcome([], {"action": reply.action, "content": reply.content, "unanswered": reply.unanswered})

    return run


async def pending(workbench: Workbench) -> list[dict[str, Any]]:
    """The questions that wait."""
    return list((await workbench.call("list_approvals", kind="question"))["approvals"])


async def asked(workbench: Workbench) -> dict[str, Any]:
    """The question that waits."""
    return dict((await given.until(lambda: pending(workbench)))[0])


@pytest.mark.parametrize(
    ("op", "more", "told", "status"),
    [
        ("approve", {"choices": {"content": {"colour": "r", "coats": 2}}}, "accept", "approved"),
        ("approve", {"choices": {"action": "cancel"}}, "cancel", "rejected"),
        ("reject", {"reason": "no paint"}, "decline", "rejected"),
    ],
)
async def test_a_server_is_told_what_the_person_answers_and_the_answer_is_stored_nowhere(
    workbench: Workbench, shelf: Shelf, op: str, more: dict[str, Any], told: str, status: str
) -> None:
    shelf.put("hub__paint", asking(ServerQuestion("Which colour?\x1b[2J", FORM)), hints=READING)
    call = begin(workbench, "hub__paint")
    question = await asked(workbench)
    payload = question["payload"]
    assert (payload["server"], payload["tool"], payload["sensitive"]) == ("hub", "hub__paint", ["api_key"])
    assert "\x1b" not in payload["message"]
    assert payload["form"]["properties"]["colour"]["enum"] == ["r", "b"]
    assert payload["form"]["properties"]["api_key"]["format"] == "password"
    for wrong in ({}, {"colour": "green"}, {"colour": "r", "coats": "2"}, {"colour": "r", "size": 3}):
        refused = workbench.call("approve", approval_id=question["id"], choices={"content": wrong})
        await given.refuses("INVALID_ARGUMENTS", refused)
    await workbench.call(op, approval_id=question["id"], **more)
    result = (await call).outcome.value
    assert result["action"] == told
    assert result["content"] == (more["choices"]["content"] if told == "accept" else None)
    decided = await workbench.call("get_approval", approval_id=question["id"])
    assert (decided["status"], decided["outcome"]["action"]) == (status, told)
    assert "coats" not in str(decided["outcome"])


async def test_an_address_is_shown_and_what_hides_its_host_is_no_link(workbench: Workbench, shelf: Shelf) -> None:
    for url, is_link in (("https://example.org/a", True), ("https://bank.org@evil.org/", False), ("file:///x", False)):
        shelf.put("hub__paint", asking(ServerQuestion("Sign in", {}, url)), hints=READING)
        call = begin(workbench, "hub__paint")
        question = await asked(workbench)
        assert (question["payload"]["url"], question["payload"]["is_link"]) == (url, is_link)
        await workbench.call("approve", approval_id=question["id"])
        assert (await call).outcome.value["action"] == "accept"


async def test_a_question_ends_with_its_call_and_is_not_among_all_that_are_approved(
    workbench: Workbench, shelf: Shelf
) -> None:
    shelf.put("hub__paint", asking(ServerQuestion("Which colour?", FORM)), hints=READING)
    call = begin(workbench, "hub__paint", scope=CHAT)
    question = await asked(workbench)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert await pending(workbench) == []
    choices = {"content": {"colour": "r"}}
    await given.refuses("ALREADY_DECIDED", workbench.call("approve", approval_id=question["id"], choices=choices))


PROCESS = Query(
    "process",
    "INSERT INTO processes (agent_id, pid, started, profile, spawned_at) VALUES (:agent, 1, 1.0, 'script', :now)",
)


async def test_the_program_of_a_spawned_agent_has_nobody_who_answers(
    workbench: Workbench, shelf: Shelf, admit: Admit
) -> None:
    async def declines(message: str, schema: Any) -> dict[str, Any]:
        return {"action": "decline"}

    async def whom(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        return ToolOutcome([], await questions.of_client(ctx, call) is declines)

    shelf.put("hub__whom", whom, hints=READING)
    ada = await admit("ada", tools=["hub"])
    around = Surroundings(elicit=declines)
    assert (await calls.call(workbench._ctx, ToolScope(ada.caller), "hub__whom", {}, around)).outcome.value is True
    await workbench.store.write(lambda tx: tx.run(PROCESS, agent=ada.caller.agent, now=tx.now), actor="test")
    assert (await calls.call(workbench._ctx, ToolScope(ada.caller), "hub__whom", {}, around)).outcome.value is False


@pytest.mark.long
async def test_the_question_of_a_real_server_is_answered_and_one_that_nobody_answers_in_time_is_told_to_the_caller(
    served: Served, settings: Settings
) -> None:
    workbench, path = served.workbench, shutil.copy(SERVER, settings.project / "server.py")
    await workbench.call("add_tool_server", name="small", config={"command": sys.executable, "args": [str(path)]})
    paint: dict[str, Any] = {"name": "small__paint", "arguments": {"what": "it"}}
    call = asyncio.create_task(workbench.call("call_tool", **paint))
    question = await asked(workbench)
    assert question["payload"]["message"] == "Which colour for it?"
    await workbench.call("approve", approval_id=question["id"], choices={"content": {"colour": "red"}})
    assert (await call)["result"] == {"result": "red"}
    hurried = workbench._ctx._replace(settings=settings.model_copy(update={"question_seconds": 0.1}))
    late = await calls.call(hurried, ToolScope(OPERATOR), paint["name"], paint["arguments"])
    assert "no colour for it" in late.outcome.text
    assert "this was cancelled: nobody answered within 0.1 s." in late.outcome.text
    closed = (await workbench.call("list_approvals", status="decided", kind="question"))["approvals"][0]
    assert (closed["status"], closed["reason"]) == ("failed", "It was cancelled: nobody answered within 0.1 s.")

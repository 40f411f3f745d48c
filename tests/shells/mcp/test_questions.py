"""Tools that ask their client something while they run, and those that report progress."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.session import ElicitationFnT
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    InputRequiredResult,
)

from tests.conftest import Admit, Admitted, Served
from tests.shells.mcp.catalogue import Endless, Tools, text
from tests.shells.mcp.sessions import session, stdio_session
from tests.shells.mcp.test_tools import code_of
from workbench.ops import Ctx
from workbench.services.tools.tool import ToolInvocation, ToolOutcome
from workbench.shells.mcp import progress, questions

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def greet(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    """Ask for a name, and then for another one."""
    if call.surroundings.elicit is None:
        return ToolOutcome([text("Nobody can be asked.")], is_error=True)
    names = []
    for message in ("What is your name?", "\x1b[2JAnd your last name?"):
        answer = await call.surroundings.elicit(message, NAME)
        if answer["action"] != "accept":
            return ToolOutcome([text(f"The answer was {answer['action']}.")], is_error=True)
        names.append(answer["content"]["name"])
    return ToolOutcome([text(f"Hello, {' '.join(names)}!")])


class Person:
    """Answers forms one after the other; `asked` are the messages."""

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, ctx: Any, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        assert params.requested_schema == NAME
        self.asked.append(params.message)
        return ElicitResult.model_validate(self._answers.pop(0))


def accepted(name: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": name}}


def said(result: CallToolResult) -> str:
    [block] = result.content
    assert block.type == "text"
    return block.text


async def test_a_tool_asks_the_client_that_called_it(served: Served, ada: Admitted, tools: Tools, era: str) -> None:
    tools.offer("greet", greet)
    person = Person(*[accepted("Ada"), accepted("Lovelace")] * 2)
    async with session(served, ada.token, era, elicitation_callback=person) as client:
        assert said(await client.call_tool("greet", {})) == "Hello, Ada Lovelace!"
        by_name = await client.call_tool("call_tool", {"name": "greet"})
        assert (by_name.structured_content or {})["result"] == "Hello, Ada Lovelace!"
    asked = ["The tool greet asks: What is your name?", r"The tool greet asks: \u001b[2JAnd your last name?"]
    assert person.asked == asked * 2


@pytest.mark.long
async def test_a_tool_asks_over_standard_input_and_output(
    served: Served, ada: Admitted, tools: Tools, era: str
) -> None:
    tools.offer("greet", greet)
    project, person = served.workbench.settings.project, Person(accepted("Ada"), accepted("Lovelace"))
    async with stdio_session(project, ada.token, era, elicitation_callback=person) as client:
        assert said(await client.call_tool("greet", {})) == "Hello, Ada Lovelace!"


async def test_a_tool_learns_that_nobody_answers(served: Served, ada: Admitted, tools: Tools, era: str) -> None:
    tools.offer("greet", greet)
    for action in ("decline", "cancel"):
        async with session(served, ada.token, era, elicitation_callback=Person({"action": action})) as client:
            assert said(await client.call_tool("greet", {})) == f"The answer was {action}."
    async with session(served, ada.token, era) as client:
        assert said(await client.call_tool("greet", {})) == "Nobody can be asked."


def ask_person(answer: dict[str, Any]) -> ElicitationFnT:
    """A person at a client, who answers the questions of its agent."""

    async def answered(ctx: Any, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        assert params.message == "The agent ada asks: Which?"
        return ElicitResult.model_validate(answer)

    return answered


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "said", "status"),
    [
        ({"action": "accept", "content": {"answer": "CSV"}}, "You asked: Which?\nThe answer: CSV", "failed"),
        ({"action": "accept", "content": {"answer": "JSON"}}, "Which?", "pending"),
        ({"action": "decline"}, "Which?", "pending"),
    ],
)
async def test_an_agents_question_is_asked_at_its_own_client_and_is_otherwise_left_in_the_inbox(
    served: Served, ada: Admitted, era: str, answer: dict[str, Any], said: str, status: str
) -> None:
    call, question = served.workbench.call, {"question": "Which?", "options": ["CSV", "Parquet"]}
    async with session(served, ada.token, era, elicitation_callback=ask_person(answer)) as client:
        told = (await client.call_tool("ask_person", question)).structured_content or {}
    approval = await call("get_approval", approval_id=told["approval_id"])
    assert (told["text"], approval["status"], approval["person"]) == (said, status, None)


@pytest.mark.long
async def test_an_answer_in_the_inbox_withdraws_the_question_at_the_client(
    served: Served, ada: Admitted, era: str
) -> None:
    async def answered(ctx: Any, params: ElicitRequestParams) -> ElicitResult:
        (approval,) = (await served.workbench.call("list_approvals"))["approvals"]
        await served.workbench.call("approve", approval_id=approval["id"], choices={"content": {"answer": "CSV"}})
        if era == "legacy":
            await asyncio.Event().wait()
        return ElicitResult.model_validate({"action": "accept", "content": {"answer": "Parquet"}})

    async with session(served, ada.token, era, elicitation_callback=answered) as client:
        told = (await client.call_tool("ask_person", {"question": "Which?"})).structured_content or {}
    assert told["text"] == "You asked: Which?\nThe answer: CSV"
    answers = [one["text"] for one in (await served.workbench.call("list_messages"))["messages"]]
    assert sum("The answer" in text for text in answers) == 1


async def first_question(client: Client, name: str) -> InputRequiredResult:
    """The first answer of an asking tool to a client without a session."""
    asked = await client.session.call_tool(name, {}, allow_input_required=True)
    assert isinstance(asked, InputRequiredResult)
    return asked


async def test_only_the_same_call_of_the_same_agent_continues(served: Served, admit: Admit, tools: Tools) -> None:
    tools.offer("greet", greet)
    ada, bob = await admit("ada", tools=["*"]), await admit("bob", tools=["*"])
    answers = {"question_1": ElicitResult.model_validate(accepted("Ada"))}

    async def answer(by: Client, state: str, **arguments: Any) -> None:
        await by.session.call_tool(
            "greet", arguments, input_responses=answers, request_state=state, allow_input_required=True
        )

    async with (
        session(served, ada.token, elicitation_callback=Person()) as client,
        session(served, bob.token, elicitation_callback=Person()) as other,
    ):
        for changed in ("agent", "arguments", "state", "repeated"):
            state = (await first_question(client, "greet")).request_state
            assert state is not None
            if changed == "repeated":
                await answer(client, state)
            with pytest.raises(MCPError) as failure:
                await answer(
                    other if changed == "agent" else client,
                    f"{state}x" if changed == "state" else state,
                    **({"loudly": True} if changed == "arguments" else {}),
                )
            assert failure.value.code == INVALID_PARAMS, changed


async def test_an_answer_that_is_missing_is_asked_for_again(served: Served, ada: Admitted, tools: Tools) -> None:
    tools.offer("greet", greet)
    async with session(served, ada.token, elicitation_callback=Person()) as client:
        first = await first_question(client, "greet")
        again = await client.session.call_tool(
            "greet", {}, input_responses={}, request_state=first.request_state, allow_input_required=True
        )
    assert isinstance(again, InputRequiredResult)
    assert again.input_requests == first.input_requests
    assert again.request_state != first.request_state


async def test_calls_that_wait_for_answers_are_limited_and_end_after_a_time(
    served: Served, ada: Admitted, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "MOST_WAITING", 2)
    ended = [asyncio.Event() for _ in range(3)]
    waiting = iter(ended)

    async def ask(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        mine = next(waiting)
        assert call.surroundings.elicit is not None
        try:
            await call.surroundings.elicit("Really?", NAME)
        finally:
            mine.set()
        raise AssertionError

    tools.offer("inquire", ask)
    async with session(served, ada.token, elicitation_callback=Person()) as client:
        await first_question(client, "inquire")
        monkeypatch.setattr(questions, "SECONDS_TO_ANSWER", 0.01)
        await first_question(client, "inquire")
        await ended[1].wait()
        assert not ended[0].is_set()
        monkeypatch.setattr(questions, "MOST_WAITING", 1)
        with pytest.raises(MCPError) as failure:
            await first_question(client, "inquire")
        assert failure.value.data["code"] == "TOO_MANY_QUESTIONS"
        await ended[2].wait()
        await served.workbench.call("revoke_agent", agent_id="ada")
        await ended[0].wait()


# Progress


CALLED: dict[str, dict[str, Any]] = {"count": {}, "call_tool": {"name": "count"}}


async def test_a_client_gets_the_progress_of_a_tool(served: Served, ada: Admitted, tools: Tools, era: str) -> None:
    heard: asyncio.Queue[tuple[float, float | None, str | None]] = asyncio.Queue()

    async def count(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        assert call.surroundings.progress is not None
        for n in (1, 2, 2, 1, 3):
            await call.surroundings.progress(n, 3, f"{n} of 3")
            if n > heard.qsize():
                await reported[n - 1].wait()
        return ToolOutcome([text("counted")])

    async def note(done: float, total: float | None, message: str | None) -> None:
        heard.put_nowait((done, total, message))
        reported[int(done) - 1].set()

    tools.offer("count", count)
    async with session(served, ada.token, era) as client:
        for name, arguments in CALLED.items():
            reported = [asyncio.Event() for _ in range(3)]
            await client.call_tool(name, arguments, progress_callback=note)
            assert [heard.get_nowait() for _ in range(heard.qsize())] == [(n, 3, f"{n} of 3") for n in (1, 2, 3)]


async def test_a_flood_of_progress_is_thinned_out_and_ends_with_the_newest(
    served: Served, ada: Admitted, tools: Tools, era: str
) -> None:
    async def flood(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        assert call.surroundings.progress is not None
        for n in range(20_000):
            await call.surroundings.progress(n, None, None)
            if n % 1_000 == 0:
                await asyncio.sleep(0)
        return ToolOutcome([text("done")])

    tools.offer("flood", flood)
    heard: list[float] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)

    async with session(served, ada.token, era) as client:
        await client.call_tool("flood", {}, progress_callback=note)
    assert heard == sorted(set(heard))
    assert len(heard) < 200
    assert heard[-1] == 19_999


async def test_a_client_is_told_that_a_silent_tool_still_runs(
    served: Served, ada: Admitted, tools: Tools, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_REPORTS", 0.01)
    endless = Endless()
    tools.offer("endless", endless)
    heard: list[float] = []
    enough = asyncio.Event()

    async def note(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)
        if len(heard) == 3:
            enough.set()

    async with session(served, ada.token, era) as client:
        call = asyncio.create_task(client.call_tool("endless", {}, progress_callback=note))
        await enough.wait()
        await served.workbench.call("revoke_agent", agent_id="ada")
        assert code_of(await call) == "INVALID_TOKEN"
        await endless.was_cancelled.wait()
    assert heard == sorted(set(heard))

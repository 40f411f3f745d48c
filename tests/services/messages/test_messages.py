"""Messages to agents, comments on tasks, and questions of agents to the person."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.chance import SOAK
from tests.conftest import Admit, Admitted, Clock, admitted
from tests.services.tasks.leases.calls import sweep
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused, TooMany
from workbench.services.messages import questions
from workbench.state.settings import Settings
from workbench.worker import previous

pytestmark = [pytest.mark.anyio, pytest.mark.long]


@pytest.fixture
async def session(workbench: Workbench) -> str:
    """A session."""
    project = await workbench.call("create_project", name="Night")
    return str((await workbench.call("create_session", project_id=project["id"], name="One"))["id"])


@pytest.fixture
async def ada(admit: Admit, session: str) -> Admitted:
    """An implementer in a session."""
    return await admit("ada", session_id=session)


@pytest.fixture
async def bob(admit: Admit, session: str) -> Admitted:
    """Another one in the same session."""
    return await admit("bob", session_id=session)


async def texts(workbench: Workbench, agent: Admitted, **arguments: Any) -> list[str]:
    """The texts of an agent's inbox."""
    inbox = await workbench.dispatch(agent.caller, "read_messages", arguments)
    return [message["text"] for message in inbox["messages"]]


async def state(workbench: Workbench, message: dict[str, Any]) -> str:
    """How far a message has come."""
    listed = (await workbench.call("list_messages"))["messages"]
    return next(one["state"] for one in listed if one["id"] == message["id"])


async def test_a_message_wakes_its_agent_and_no_other_and_is_acted_on_once(
    workbench: Workbench, ada: Admitted, bob: Admitted
) -> None:
    waiting = asyncio.create_task(workbench.dispatch(bob.caller, "heartbeat_and_get_tasks", {"wait_seconds": 20}))
    while not workbench.feed.readers:
        await asyncio.sleep(0)
    await workbench.call("tell", agent_id="ada", text="Not for bob.")
    sent = await workbench.dispatch(ada.caller, "tell", {"agent_id": "bob", "text": "Use CSV; token=ghp_" + "a1" * 18})
    assert await state(workbench, sent) in ("queued", "seen")
    work = await waiting
    (message,) = work["messages"]
    assert (message["sender"], message["kind"], await state(workbench, sent)) == ("ada", "message", "seen")
    assert message["text"].startswith("Use CSV")
    assert "a1a1" not in message["text"]
    assert (await workbench.dispatch(bob.caller, "heartbeat_and_get_tasks", {}))["messages"] == []
    for acted in ([message["id"]], []):  # an agent that says so twice acts once
        answer = await workbench.dispatch(bob.caller, "read_messages", {"acted": [message["id"]]})
        assert (answer["acted"], answer["messages"]) == (acted, [])
    assert await state(workbench, sent) == "acted"


async def test_what_cannot_be_told_is_refused(
    workbench: Workbench, admit: Admit, ada: Admitted, bob: Admitted, settings: Settings
) -> None:
    async def tell(to: str, text: str = "x", by: Admitted = ada) -> None:
        await workbench.dispatch(by.caller, "tell", {"agent_id": to, "text": text})

    stranger = await admit("eve")
    await admit("gone")
    await workbench.call("revoke_agent", agent_id="gone")
    for to, code, error in (
        ("ada", "OWN_MESSAGE", BadInput),
        ("eve", "AGENT_NOT_FOUND", NotFound),
        ("nobody", "AGENT_NOT_FOUND", NotFound),
    ):
        with pytest.raises(error, match=code):
            await tell(to)
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await tell("ada", by=stranger)
    with pytest.raises(Conflict, match="AGENT_ENDED"):
        await workbench.call("tell", agent_id="gone", text="x")
    with pytest.raises(Conflict, match="NOT_SUPERVISED"):
        await workbench.call("tell", agent_id="ada", text="x", interrupt=True)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(bob.caller, "tell", {"agent_id": "ada", "text": "x", "interrupt": True})
    with pytest.raises(BadInput, match="TOO_LARGE"):
        await tell("bob", "x" * 10_000_000)
    for text in ("", " \n\t", None, "a\0b"):
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await workbench.call("tell", agent_id="bob", text=text)
    for options in (["a"] * 21, [" "], ["x" * 2_000]):
        with pytest.raises(BadInput, match=r"INVALID_ARGUMENTS|TOO_LARGE"):
            await workbench.dispatch(ada.caller, "ask_person", {"question": "Which?", "options": options})
    with pytest.raises(BadInput, match="AGENT_ONLY"):
        await workbench.call("read_messages")
    with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
        await workbench.call("comment_on_task", task_id=99, text="x")
    for _ in range(settings.max_messages_per_minute):
        await tell("bob")
    with pytest.raises(TooMany, match="TOO_MANY_MESSAGES"):
        await tell("bob")


async def test_a_full_inbox_takes_no_more(settings: Settings) -> None:
    async with Workbench.open(settings.model_copy(update={"max_open_messages": 1})) as workbench:
        await admitted(workbench, "ada")
        await workbench.call("tell", agent_id="ada", text="One.")
        with pytest.raises(Conflict, match="INBOX_FULL"):
            await workbench.call("tell", agent_id="ada", text="Two.")


async def test_a_comment_goes_to_whoever_does_the_task_and_to_everyone_after(
    workbench: Workbench, ada: Admitted, bob: Admitted
) -> None:
    task = (await workbench.call("create_task", title="Clean", persona_id="implementer", max_retries=3))["id"]
    before = await workbench.call("comment_on_task", task_id=task, text="Keep the header.")
    claimed = (await workbench.dispatch(ada.caller, "claim_task", {}))["task"]
    assert [message["text"] for message in claimed["messages"]] == ["Keep the header."]
    during = await workbench.call("comment_on_task", task_id=task, text="And the units.")
    assert during["agent_id"] == "ada"
    assert await texts(workbench, ada, acted=[before["id"]]) == ["And the units."]
    await workbench.dispatch(ada.caller, "release_task", {"task_id": task})
    again = (await workbench.dispatch(bob.caller, "claim_task", {}))["task"]
    prompt = previous.told(again, is_continued=False)
    assert prompt.index("Keep the header.") < prompt.index("And the units.")


async def test_what_is_told_a_worker_while_it_runs_a_command_comes_with_the_next_task(
    workbench: Workbench, ada: Admitted
) -> None:
    walt = replace(ada.caller, commands_only=True)
    for title in "first", "second":
        await workbench.call("create_task", title=title, persona_id="implementer", run="true")
    first = (await workbench.dispatch(walt, "claim_task", {}))["task"]
    sent = await workbench.call("tell", agent_id="ada", text="Use CSV.")
    assert (await workbench.dispatch(walt, "heartbeat_and_get_tasks", {}))["messages"] == []
    await workbench.dispatch(walt, "complete_task", {"task_id": first["id"]})
    assert await state(workbench, sent) == "queued", "no command has got it"
    second = (await workbench.dispatch(walt, "claim_task", {}))["task"]
    assert [message["text"] for message in second["messages"]] == ["Use CSV."]


async def test_the_answer_to_an_agents_question_is_a_message_to_it(
    workbench: Workbench, ada: Admitted, session: str
) -> None:
    asked = await workbench.dispatch(ada.caller, "ask_person", {"question": "Which?", "options": ["CSV", "Parquet"]})
    (approval,) = (await workbench.call("list_approvals"))["approvals"]
    assert (approval["kind"], approval["requester"], approval["id"]) == ("agent_question", "ada", asked["approval_id"])
    waiting = asyncio.create_task(texts(workbench, ada, wait_seconds=20))
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await workbench.call("approve", approval_id=approval["id"], choices={"content": {"answer": "JSON"}})
    await workbench.call("approve", approval_id=approval["id"], choices={"content": {"answer": "CSV"}})
    assert await waiting == ["You asked: Which?\nThe answer: CSV"]
    twice = await workbench.dispatch(ada.caller, "ask_person", {"question": "Which?", "options": ["a", "b", "a"]})
    assert (await workbench.call("get_approval", approval_id=twice["approval_id"]))["payload"]["options"] == ["a", "b"]
    declined = await workbench.dispatch(ada.caller, "ask_person", {"question": "May I?"})
    await workbench.call("reject", approval_id=declined["approval_id"])
    assert (await texts(workbench, ada))[-1].endswith("decide this yourself.")


async def test_nobody_gets_an_answer_that_comes_after_the_attempt(workbench: Workbench, ada: Admitted) -> None:
    task = (await workbench.call("create_task", title="Clean", persona_id="implementer"))["id"]
    await workbench.dispatch(ada.caller, "claim_task", {})
    asked = await workbench.dispatch(ada.caller, "ask_person", {"question": "Which?"})
    await workbench.dispatch(ada.caller, "complete_task", {"task_id": task})
    with pytest.raises(Conflict, match="ALREADY_DECIDED"):
        await workbench.call("approve", approval_id=asked["approval_id"], choices={"content": {"answer": "x"}})
    await questions.close_due(workbench._ctx)
    assert (await workbench.call("get_approval", approval_id=asked["approval_id"]))["status"] == "failed"
    assert await texts(workbench, ada) == []


async def test_what_is_told_does_nothing_in_a_terminal(workbench: Workbench, ada: Admitted) -> None:
    told = await workbench.call("tell", agent_id="ada", text="One\ntwo \x1b]0;three\x07")
    assert told["text"] == "One\ntwo \\u001b]0;three\\u0007"


AGENTS, MESSAGES = (200, 10_000) if SOAK else (8, 100)


@pytest.mark.timeout(1_800)
async def test_each_message_to_a_crowd_is_acted_on_once(settings: Settings) -> None:
    acted: list[int] = []
    limits = {"max_messages_per_minute": MESSAGES, "max_pending_registrations": AGENTS}
    async with Workbench.open(settings.model_copy(update=limits)) as workbench:
        project = await workbench.call("create_project", name="Night")
        session = (await workbench.call("create_session", project_id=project["id"], name="One"))["id"]
        crowd = [await admitted(workbench, f"agent-{number}", session_id=session) for number in range(AGENTS)]

        async def act(agent: Admitted) -> None:
            done: list[int] = []
            while len(acted) < MESSAGES:
                arguments = {"acted": [*done, *done], "wait_seconds": 0.5}
                inbox = await workbench.dispatch(agent.caller, "read_messages", arguments)
                acted.extend(inbox["acted"])
                done = [message["id"] for message in inbox["messages"]]

        async def send(number: int) -> None:
            by, to = crowd[number % AGENTS], crowd[(number * 7 + 1) % AGENTS]
            arguments = {"agent_id": to.agent_id, "text": f"Message {number}"}
            if by is to or number % 2:
                await workbench.call("tell", **arguments)
            else:
                await workbench.dispatch(by.caller, "tell", arguments)

        async def send_all() -> None:
            for number in range(MESSAGES):
                await send(number)

        await asyncio.gather(send_all(), *(act(agent) for agent in crowd))
        page = await workbench.call("list_messages", limit=500)
    assert sorted(acted) == list(range(1, MESSAGES + 1))
    assert {message["state"] for message in page["messages"]} == {"acted"}


async def test_a_lease_does_not_end_while_its_agent_waits_for_an_answer(settings: Settings, clock: Clock) -> None:
    async with Workbench.open(settings, clock=clock) as workbench:
        await _wait_for_an_answer(workbench, clock)


async def _wait_for_an_answer(workbench: Workbench, clock: Clock) -> None:
    ada = await admitted(workbench, "ada")
    task = (await workbench.call("create_task", title="Clean", persona_id="implementer", lease_seconds=60))["id"]
    await workbench.dispatch(ada.caller, "claim_task", {})
    asked = await workbench.dispatch(ada.caller, "ask_person", {"question": "Which?"})
    clock.forward(3_600)
    await sweep(workbench)
    assert (await workbench.call("get_task_status", task_id=task))["assigned_agent_id"] == "ada"
    clock.forward(workbench.settings.agent_question_seconds)
    await questions.close_due(workbench._ctx)
    assert (await texts(workbench, ada))[-1].endswith("Nobody answered in time: decide this yourself.")
    assert (await workbench.call("get_approval", approval_id=asked["approval_id"]))["status"] == "failed"
    await sweep(workbench)
    assert (await workbench.call("get_task_status", task_id=task))["status"] == "pending"

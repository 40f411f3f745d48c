"""Calls that take long, as tasks of MCP's extension: they go on without the connection, for their caller alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from mcp.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND, CallToolResult, ElicitResult, Request, RequestParams, Result

from tests import given
from tests.conftest import Admit, Admitted, Served, limited
from tests.shells.mcp.catalogue import Endless, Tools, returning, text
from tests.shells.mcp.sessions import session, stdio_session
from tests.shells.mcp.test_questions import accepted, greet
from workbench.errors import NotFound
from workbench.ops import Ctx
from workbench.services.tools.tool import ToolInvocation, ToolOutcome
from workbench.shells.mcp.tasks import EXTENSION, MISSING_CAPABILITY

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
SOON = {"mcp_task_after_seconds": 0.05}


class Task(Result):
    """A task as its client sees it."""

    task_id: str
    status: str
    status_message: str | None = None
    created_at: str
    ttl_ms: int
    poll_interval_ms: int


class Created(Task):
    """The answer to a call that has become a task."""

    result_type: Literal["task"] = "task"


class TaskState(Task):
    """Where a task stands."""

    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    input_requests: dict[str, dict[str, Any]] | None = None


class TaskParams(RequestParams):
    task_id: str
    input_responses: dict[str, ElicitResult] | None = None


class TaskRequest(Request[TaskParams, str]):
    name_param = "taskId"


async def asked(session: ClientSession, what: str, task: str, **answers: ElicitResult) -> TaskState:
    params = TaskParams(task_id=task, input_responses=answers if what == "update" else None)
    kind = TaskState if what == "get" else Result
    answer: Any = await session.send_request(TaskRequest(method=f"tasks/{what}", params=params), kind)
    return answer  # type: ignore[no-any-return]


async def until(session: ClientSession, task: str, *statuses: str) -> TaskState:
    """The task, once it has one of these statuses."""
    while (state := await asked(session, "get", task)).status not in statuses:
        await asyncio.sleep(0.01)
    return state


class Tasks(ClientExtension):
    """A client's own side: it waits for a task, as if it were the call."""

    identifier = EXTENSION

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Created, resolve=self._resolve)]

    async def _resolve(self, created: Created, context: ClaimContext) -> CallToolResult:
        ended = await until(context.session, created.task_id, "completed")
        return CallToolResult.model_validate(ended.result)


async def begun(client: Client, name: str, **arguments: Any) -> Created:
    """A call that has become a task."""
    created = await client.session.call_tool(name, arguments, allow_claimed=True)
    assert isinstance(created, Created), created
    assert created.status == "working"
    return created


def ending(event: asyncio.Event, *, error: bool = False) -> Any:
    """A tool that ends when the test says so."""

    async def run(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        assert call.surroundings.progress is not None
        await call.surroundings.progress(0.5, 1.0, "Half of it is done.")
        await event.wait()
        if error:
            raise NotFound("UNKNOWN_TOOL", "It has gone.")
        return ToolOutcome([text("It is done.")])

    return run


@limited(**SOON)
async def test_a_long_call_goes_on_without_its_connection_and_its_caller_gets_the_result_by_another(
    served: Served, ada: Admitted
) -> None:
    await given.task(served.workbench, "Count")
    wait = {"task_id": 1, "wait_seconds": 30}
    async with session(served, ada.token, extensions=[Tasks()]) as client:
        created = await begun(client, "wait_for_task", **wait)
    await given.end(served.workbench, ada, 1)
    async with session(served, ada.token, extensions=[Tasks()]) as client:
        ended = await until(client.session, created.task_id, "completed")
        whole = await client.call_tool("wait_for_task", wait)
    assert ended.result is not None
    assert CallToolResult.model_validate(ended.result).structured_content == whole.structured_content
    assert (ended.created_at, ended.ttl_ms >= 3_600_000) == (created.created_at, True)


@pytest.mark.long
@limited(**SOON)
async def test_a_client_that_knows_tasks_waits_for_one_as_for_a_call_and_gets_short_ones_at_once(
    served: Served, ada: Admitted, tools: Tools
) -> None:
    done = asyncio.Event()
    tools.offer("count", ending(done))
    tools.offer("look", returning(text("Here.")))
    async with session(served, ada.token, extensions=[Tasks()]) as client:
        assert client.server_capabilities is not None
        assert EXTENSION in (client.server_capabilities.extensions or {})
        state = await asked(client.session, "get", (await begun(client, "count")).task_id)
        assert state.status_message == "Half of it is done."
        short = await client.session.call_tool("look", {}, allow_claimed=True)
        assert isinstance(short, CallToolResult)
        asyncio.get_running_loop().call_later(0.1, done.set)
        assert (await client.call_tool("count", {})).content == CallToolResult(content=[text("It is done.")]).content


@pytest.mark.long
@limited(**SOON)
async def test_a_task_is_its_callers_alone_and_for_those_who_know_tasks(
    served: Served, ada: Admitted, admit: Admit, tools: Tools
) -> None:
    tools.offer("count", Endless())
    async with session(served, ada.token, extensions=[Tasks()]) as client:
        task = (await begun(client, "count")).task_id
    refused = []
    bob = (await admit("bob", tools=["*"])).token
    for token, more in [(bob, {"extensions": [Tasks()]}), (ada.token, {}), (ada.token, {"era": "legacy"})]:
        async with session(served, token, **more) as client:
            for what in ("get", "update", "cancel"):
                with pytest.raises(MCPError) as raised:
                    await asked(client.session, what, task)
                refused.append(raised.value.error.code)
    assert refused == [INVALID_PARAMS] * 3 + [MISSING_CAPABILITY] * 3 + [METHOD_NOT_FOUND] * 3
    async with session(served, ada.token, extensions=[Tasks()]) as client:
        assert (await asked(client.session, "get", task)).status == "working"
        with pytest.raises(MCPError) as raised:
            await asked(client.session, "get", "another")
    assert (raised.value.error.data or {})["code"] == "MCP_TASK_NOT_FOUND"


@pytest.mark.long
@limited(**SOON)
async def test_a_task_asks_its_client_is_cancelled_and_fails_as_a_call_does(
    served: Served, ada: Admitted, tools: Tools
) -> None:
    async def nobody(ctx: Any, params: Any) -> ElicitResult:
        raise AssertionError("It is asked by the task.")

    endless, gone, slow = Endless(), asyncio.Event(), asyncio.Event()

    async def greet_later(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        await slow.wait()
        return await greet(ctx, call)

    tools.offer("greet", greet_later)
    tools.offer("count", endless)
    tools.offer("vanish", ending(gone, error=True))
    async with session(served, ada.token, extensions=[Tasks()], elicitation_callback=nobody) as client:
        task, names = (await begun(client, "greet")).task_id, ["Ada", "Lovelace"]
        slow.set()
        for name in names:
            requests = (await until(client.session, task, "input_required")).input_requests or {}
            (question,) = requests
            assert requests[question]["params"]["message"].startswith("The tool greet asks: ")
            answer = ElicitResult.model_validate(accepted(name))
            await asked(client.session, "update", task, **{question: answer, "unknown": answer})
        ended = await until(client.session, task, "completed")
        assert (ended.result or {})["content"][0]["text"] == "Hello, Ada Lovelace!"

        task = (await begun(client, "count")).task_id
        await asked(client.session, "cancel", task)
        await until(client.session, task, "cancelled")
        assert endless.was_cancelled.is_set()

        task = (await begun(client, "vanish")).task_id
        gone.set()
        failed = await until(client.session, task, "failed")
        assert (failed.error or {})["code"] == INVALID_PARAMS


@pytest.mark.long
@limited(**SOON, mcp_task_kept_seconds=0.2, max_mcp_tasks=1)
async def test_tasks_are_bounded_in_number_and_kept_for_a_time(served: Served, ada: Admitted, tools: Tools) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    tools.offer("first", ending(first))
    tools.offer("second", ending(second))
    async with session(served, ada.token, extensions=[Tasks()]) as client:
        task = (await begun(client, "first")).task_id
        asyncio.get_running_loop().call_later(0.2, second.set)
        waited = await client.session.call_tool("second", {}, allow_claimed=True)
        assert isinstance(waited, CallToolResult)  # there was no room for another task
        first.set()
        with pytest.raises(MCPError):
            while True:
                await asked(client.session, "get", task)


@pytest.mark.long
@limited(**SOON)
async def test_tasks_pass_over_standard_input_and_output(served: Served, ada: Admitted, tools: Tools) -> None:
    done = asyncio.Event()
    tools.offer("count", ending(done))
    project = served.workbench.settings.project
    async with stdio_session(project, ada.token, extensions=[Tasks()]) as client:
        await begun(client, "count")
        asyncio.get_running_loop().call_later(0.1, done.set)
        assert (await client.call_tool("count", {})).content == CallToolResult(content=[text("It is done.")]).content

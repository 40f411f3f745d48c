"""The connection to a project's server: it gives no token to another program at the same address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count
from typing import Any

import pytest

from kernel_ext.hosting.serving import attach
from tests import given
from tests.conftest import Served
from tests.tcp_sink import TcpSink
from workbench.client import lasting
from workbench.client.connection import ProjectConnection
from workbench.client.lasting import LastingConnection as Sweep
from workbench.client.project_server import ProjectServer
from workbench.errors import WorkbenchError
from workbench.recording.connection import RecorderConnection as Recording
from workbench.shells.mcp.bridge import Bridge
from workbench.state.server_file import ServerFile

pytestmark = pytest.mark.anyio

Call = Callable[[], Awaitable[Any]]


@asynccontextmanager
async def recorder(served: Served) -> AsyncIterator[Call]:
    recording = Recording(served.workbench.settings.project)
    yield lambda: asyncio.to_thread(recording.call, "list_runs")
    await asyncio.to_thread(recording.close)


@asynccontextmanager
async def worker_of_a_sweep(served: Served) -> AsyncIterator[Call]:
    sweep = Sweep(served.workbench.settings.server_file)
    await asyncio.to_thread(sweep.start)
    yield lambda: asyncio.to_thread(sweep, "list_runs")
    await asyncio.to_thread(sweep.stop)


@asynccontextmanager
async def attached_kernel(served: Served) -> AsyncIterator[Call]:
    async with AsyncExitStack() as stack:
        serving = await attach(stack, served.workbench.settings)
        assert serving is not None
        yield lambda: serving.call("list_runs", {}, None, None)


@asynccontextmanager
async def agent_of_a_kernel(served: Served) -> AsyncIterator[Call]:
    async with AsyncExitStack() as stack:
        serving = await attach(stack, served.workbench.settings)
        assert serving is not None
        yield lambda: serving.call("list_runs", {}, served.workbench.operator_token, None)


@asynccontextmanager
async def subscription_of_an_mcp_client(served: Served) -> AsyncIterator[Call]:
    server = ProjectServer.at(served.info.url, served.workbench.settings.project)
    answers: asyncio.Queue[Any] = asyncio.Queue()
    bridge, numbers = Bridge(server, served.workbench.operator_token, answers.put), count()

    async def subscribe() -> None:
        await bridge.pass_on({"jsonrpc": "2.0", "id": next(numbers), "method": "subscriptions/listen", "params": {}})
        await answers.get()

    yield subscribe
    await bridge.close()


USERS = [recorder, worker_of_a_sweep, attached_kernel, agent_of_a_kernel, subscription_of_an_mcp_client]


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting, "PATIENCE_SECONDS", 0.0)


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("user", USERS, ids=lambda user: user.__name__)
async def test_another_program_at_the_address_of_a_server_that_has_ended_gets_no_token(
    served: Served, user: Callable[[Served], Any]
) -> None:
    async with user(served) as call:
        await call()
        await served.servers.stop()
        async with TcpSink(int(served.info.url.rpartition(":")[2])) as other:
            with suppress(WorkbenchError):
                await call()
    assert b"wb" not in other.received


async def test_a_call_that_a_vanishing_server_failed_is_made_without_it(served: Served) -> None:
    recording, file = Recording(served.workbench.settings.project), ServerFile(served.workbench.settings.server_file)
    async with TcpSink() as server:
        file.save(served.info.model_copy(update={"url": server.url, "nonce": "no"}), "wbo_x")
        await given.refuses("NO_SERVER", asyncio.to_thread(recording.call, "list_runs"))
        server.answer = b"{}"
        assert await asyncio.to_thread(recording.call, "list_runs")
    await asyncio.to_thread(recording.close)


async def test_a_call_that_waits_is_repeated_where_the_server_has_moved_to(served: Served) -> None:
    file, token = ServerFile(served.workbench.settings.server_file), served.workbench.operator_token
    assert token is not None
    async with TcpSink() as former, ProjectConnection(file.path) as connection:
        former.holds_calls = True
        file.save(served.info.model_copy(update={"url": former.url, "nonce": "no"}), "wbo_x")
        call = asyncio.create_task(connection.call("list_runs"))
        await former.held.wait()
        file.save(served.info, token)
        assert "runs" in await call

"""The gate before the endpoints: callers, addresses, rates and access tokens."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.conftest import Admit, Served
from tests.shells.websocket.conftest import why_not
from workbench.app import Workbench
from workbench.errors import Refused, TooMany, Unauthenticated
from workbench.shells import koi
from workbench.shells.gate import REMEMBERED_ADDRESSES, Allowance, RequestGate, check_address, revoked, unless_ended
from workbench.shells.http import app
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

WRONG = f"wba_{'x' * 43}"
SECRET = "open sesame"
ELSEWHERE = "192.0.2.7"
REMOTE = {"allow_remote": True, "access_token": SecretStr(SECRET), "host": "192.0.2.1"}


class Seconds:
    """A clock in seconds that only the test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The settings of a fresh project, where strangers may ask six times a minute."""
    return settings.model_copy(update={"max_anonymous_requests_per_minute": 6})


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


Visit = Callable[..., httpx2.AsyncClient]


@asynccontextmanager
async def gated(workbench: Workbench, clock: Callable[[], float]) -> AsyncIterator[Visit]:
    """`visit(token, address)`: an HTTP client at an address, in front of the gate of a workbench."""
    gate = RequestGate(Starlette(routes=[*app.routes(workbench), *koi.routes(workbench)]), workbench, clock)
    async with AsyncExitStack() as stack:

        def visit(token: str | None = None, address: str = "127.0.0.1", **headers: str | bytes) -> httpx2.AsyncClient:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            sent |= {"Authorization": f"Bearer {token}"} if token else {}
            transport = httpx2.ASGITransport(app=gate, client=(address, 5_000))
            made = httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=sent)  # type: ignore[arg-type]
            stack.push_async_callback(made.aclose)
            return made

        yield visit


@pytest.fixture
async def visit(workbench: Workbench, seconds: Seconds) -> AsyncIterator[Visit]:
    async with gated(workbench, seconds) as visit:
        yield visit


@pytest.fixture
async def remote(settings: Settings) -> AsyncIterator[Workbench]:
    """An open project that is served to others."""
    async with Workbench.open(settings.model_copy(update=REMOTE)) as opened:
        yield opened


async def code(client: httpx2.AsyncClient, path: str = "/api/ops/ping") -> str | None:
    response = await client.post(path)
    return None if response.status_code == 200 else response.json()["error"]["code"]


# How often


async def test_requests_of_strangers_are_rate_limited_and_refilled(visit: Visit, seconds: Seconds) -> None:
    assert [await code(visit()) for _ in range(6)] == [None] * 6
    assert await code(visit(WRONG)) == "RATE_LIMITED"
    refused = await visit().post("/api/ops/ping")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "10")
    assert refused.json()["error"]["details"] == {"retry_after_seconds": 10}
    seconds.now += 10
    assert [await code(visit()) for _ in range(2)] == [None, "RATE_LIMITED"]
    seconds.now += 3_600  # wrong tokens count as none
    assert [await code(visit(WRONG)) for _ in range(7)] == ["INVALID_TOKEN"] * 6 + ["RATE_LIMITED"]
    assert await code(visit()) == "RATE_LIMITED"


async def test_known_callers_are_not_rate_limited_by_strangers(
    workbench: Workbench, visit: Visit, admit: Admit
) -> None:
    pending = await workbench.call("register", name="Eve")
    known = [visit(workbench.operator_token), visit((await admit("ada")).token), visit(pending["token"])]
    assert [await code(visit()) for _ in range(7)][-1] == "RATE_LIMITED"
    for client in known:
        assert [await code(client) for _ in range(20)] == [None] * 20
    assert [(await visit().get("/health")).status_code for _ in range(20)] == [200] * 20


async def test_connections_are_counted_by_their_own_limits(served: Served) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(20):
            socket = await stack.enter_async_context(connect(f"{served.info.ws_url}/me"))
            assert "tool_selection_prompt" in str(await socket.recv())


async def test_one_address_does_not_use_up_the_allowance_of_another() -> None:
    allowance = Allowance(1, Seconds())
    allowance.spend("first")
    allowance.spend("second")
    with pytest.raises(TooMany):
        allowance.spend("first")
    for number in range(REMEMBERED_ADDRESSES - 1):
        allowance.spend(f"another {number}")
    with pytest.raises(TooMany):
        allowance.spend("first")
    allowance.spend("second")  # forgotten: nobody can make the list of addresses grow


# Who


async def test_a_caller_has_the_address_and_the_program_of_its_client(workbench: Workbench, visit: Visit) -> None:
    agents = [b"curl/8", b"evil\x1b[31m\x00\x85\x07" + b"x" * 300, b" ", b""]
    for number, agent in enumerate(agents):
        await visit(address="127.0.0.1", User_Agent=agent).post("/api/ops/register", json={"name": f"agent {number}"})
    approvals = (await workbench.call("list_approvals"))["approvals"]
    assert {a["payload"]["name"]: a["payload"]["client"] for a in approvals} == {
        "agent 0": "curl/8",
        "agent 1": ("evil[31m" + "x" * 300)[:200],
        "agent 2": None,
        "agent 3": None,
    }
    assert {a["payload"]["address"] for a in approvals} == {"127.0.0.1"}


# From where


async def test_remote_clients_are_refused_unless_allowed(workbench: Workbench, visit: Visit) -> None:
    for address in (ELSEWHERE, "127.0.0.2", "::ffff:192.0.2.7", "testclient"):
        for token in (None, workbench.operator_token):
            assert await code(visit(token, address, X_Workbench_Access=SECRET)) == "REMOTE_NOT_ALLOWED"
    assert await code(visit(address="::1")) is None


async def test_remote_clients_need_the_access_token(remote: Workbench, seconds: Seconds) -> None:
    wrong = (b"", b"open sesam", b"open sesame!", b"\xf6")
    async with gated(remote, seconds) as visit:
        for number, token in enumerate((None, remote.operator_token, WRONG)):
            for access in wrong:
                client = visit(token, f"192.0.2.{number}", X_Workbench_Access=access)
                assert await code(client) == "ACCESS_TOKEN_REQUIRED"
        assert (await visit(address=ELSEWHERE).get("/health")).status_code == 401
        known = {"X_Workbench_Access": SECRET}
        assert await code(visit(None, ELSEWHERE, **known)) is None
        assert await code(visit(WRONG, ELSEWHERE, **known)) == "INVALID_TOKEN"
        assert await code(visit(None, ELSEWHERE, **known), "/api/ops/whoami") == "TOKEN_REQUIRED"
        assert await code(visit(remote.operator_token, ELSEWHERE, **known), "/api/ops/whoami") is None
        assert await code(visit()) is None


async def test_a_remote_node_needs_no_token_where_its_signature_is_checked(
    remote: Workbench, visit: Visit, seconds: Seconds
) -> None:
    endpoint = "/koi-net/events/poll"
    assert await code(visit(address=ELSEWHERE), endpoint) == "REMOTE_NOT_ALLOWED"
    async with gated(remote, seconds) as visit:
        assert await code(visit(address=ELSEWHERE), endpoint) == "KOI_NOT_JOINED"
        assert await code(visit(WRONG, ELSEWHERE), endpoint) == "ACCESS_TOKEN_REQUIRED"
        assert await code(visit(address=ELSEWHERE), "/agents/ada/tools/list") == "ACCESS_TOKEN_REQUIRED"


async def test_a_server_is_known_by_its_own_addresses_alone(remote: Workbench, seconds: Seconds) -> None:
    hosts = {"192.0.2.1": None, "192.0.2.1:8765": None, "127.0.0.1": None, "localhost": None}
    hosts |= {"192.0.2.2": "BAD_HOST", "evil.example": "BAD_HOST", "192.0.2.1.evil.example": "BAD_HOST"}
    async with gated(remote, seconds) as visit:
        for host, expected in hosts.items():
            assert await code(visit(None, ELSEWHERE, X_Workbench_Access=SECRET, Host=host)) == expected, host
        for origin, expected in {"http://192.0.2.1:3000": None, "http://evil.example": "BAD_ORIGIN"}.items():
            client = visit(None, "192.0.2.8", X_Workbench_Access=SECRET, Origin=origin)
            assert await code(client) == expected, origin


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux answers on every address of 127.0.0.0/8")
async def test_a_remote_server_is_reached_only_with_the_access_token(settings: Settings) -> None:
    """On 127.0.0.2, which counts as elsewhere; a client can have an address of its own there too."""
    there = settings.model_copy(update=REMOTE | {"host": "127.0.0.2", "access_token": SecretStr("sesame")})
    from_there: dict[str, Any] = {"local_addr": ("127.0.0.3", 0)}
    async with Workbench.open(there) as opened, Servers(opened) as servers:
        info = await servers.start(0)
        transport = httpx2.AsyncHTTPTransport(local_address="127.0.0.3", verify=False)
        async with httpx2.AsyncClient(transport=transport, base_url=info.url) as client:
            assert await code(client) == "ACCESS_TOKEN_REQUIRED"
            client.headers["X-Workbench-Access"] = "sesame"
            assert await code(client) is None
        address, greeting = f"{info.ws_url}/me", "tool_selection_prompt"
        by_header = {"additional_headers": {"X-Workbench-Access": "x"}}
        for wrong in ({}, {"subprotocols": ["wb.v1", "access.open"]}, by_header):
            with pytest.raises(InvalidStatus) as caught:
                await connect(address, **from_there, **wrong)
            assert why_not(caught.value) == (401, "ACCESS_TOKEN_REQUIRED")
        async with connect(address, **from_there, additional_headers={"X-Workbench-Access": "sesame"}) as socket:
            assert greeting in str(await socket.recv())
        offered = ["wb.v1", "access.sesame", f"bearer.{opened.operator_token}"]
        async with connect(address, **from_there, subprotocols=offered) as socket:
            assert socket.subprotocol == "wb.v1"
            assert greeting in str(await socket.recv())
        async with connect(address) as socket:  # from 127.0.0.1, where the person is
            assert greeting in str(await socket.recv())


async def test_another_address_is_bound_only_if_that_is_allowed_and_guarded(settings: Settings) -> None:
    for host in ("127.0.0.1", "localhost"):
        check_address(settings.model_copy(update={"host": host}))
    for host in ("0.0.0.0", "127.0.0.2", "192.0.2.1"):
        elsewhere = settings.model_copy(update={"host": host})
        with pytest.raises(Refused, match="REMOTE_NOT_ALLOWED"):
            check_address(elsewhere)
        for nothing in (None, SecretStr("")):
            with pytest.raises(Unauthenticated, match="ACCESS_TOKEN_REQUIRED"):
                check_address(elsewhere.model_copy(update={"allow_remote": True, "access_token": nothing}))
        check_address(elsewhere.model_copy(update=REMOTE | {"host": host}))


@pytest.mark.parametrize(("operation", "reason"), [("issue_token", "TOKEN_REPLACED"), ("revoke_agent", "REVOKED")])
async def test_calls_and_connections_of_an_agent_end_when_its_token_ends(
    workbench: Workbench, admit: Admit, operation: str, reason: str
) -> None:
    ada, bob = (await admit("ada")).caller, (await admit("bob")).caller
    begun, go_on = asyncio.Barrier(3), asyncio.Event()

    async def wait() -> str:
        await begun.wait()
        await go_on.wait()
        return "done"

    connection = asyncio.create_task(revoked(workbench, ada))
    call, other = (asyncio.create_task(unless_ended(workbench, caller, wait())) for caller in (ada, bob))
    await begun.wait()
    await workbench.call(operation, agent_id="ada")
    assert await connection == await revoked(workbench, ada) == reason
    for late in (call, unless_ended(workbench, ada, wait())):
        with pytest.raises(Unauthenticated, match=reason):
            await late
    go_on.set()
    assert await other == "done"


async def test_a_server_that_stops_refuses_requests_and_does_not_run_them(workbench: Workbench) -> None:
    stopping = asyncio.Event()
    gate = RequestGate(Starlette(routes=app.routes(workbench)), workbench, stopping=stopping)
    transport = httpx2.ASGITransport(app=gate, client=("127.0.0.1", 5_000))
    operator = {"Authorization": f"Bearer {workbench.operator_token}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=operator) as client:  # type: ignore[arg-type]
        assert (await client.post("/api/ops/ping", json={})).status_code == 200
        stopping.set()
        for path in ("/api/ops/ping", "/health"):
            answer = await client.request("GET" if path == "/health" else "POST", path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "SERVER_STOPPING")

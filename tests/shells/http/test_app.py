"""The HTTP endpoints, asked by a real client."""

from __future__ import annotations

import asyncio
import getpass
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from tests.conftest import Admit, Served
from tests.conftest import followed as waited_for
from tests.rules.wire.test_json_safety import BAD
from tests.shells.conftest import Visit, error_of
from workbench.client import HttpClient, McpClient
from workbench.errors import WorkbenchError
from workbench.model import Level
from workbench.ops import Caller
from workbench.settings import Settings

pytestmark = pytest.mark.anyio

WRONG = f"wba_{'x' * 43}"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The settings of a fresh project, where little is large."""
    return settings.model_copy(update={"max_frame_bytes": 2_048, "max_pending_agents": 2})


# Who may knock


async def test_anybody_may_ask_whether_the_server_is_well(served: Served, visit: Visit) -> None:
    for path in ("/health", "/healthz"):
        response = await visit().get(path)
        assert (response.status_code, response.json()) == (200, {"status": "ok", "nonce": served.info.nonce})


HOSTS = {
    "127.0.0.1": 200,
    "127.0.0.1:80": 200,
    "localhost:1234": 200,
    "LOCALHOST": 200,
    "[::1]:8765": 200,
    "evil.example": 400,
    "127.0.0.1.evil.example": 400,
    "localhost.evil.example:8765": 400,
    "127.0.0.2": 400,
    "0.0.0.0": 400,
    "[evil": 400,
    "": 400,
}
ORIGINS = {
    "http://127.0.0.1:{port}": 200,
    "http://localhost:{port}": 200,
    "http://[::1]:{port}": 200,
    "http://localhost:8888": 403,
    "http://127.0.0.1:3000": 403,
    "http://localhost": 403,
    "https://localhost": 403,
    "http://localhost:99999": 403,
    "file://localhost:{port}": 403,
    "http://evil.example": 403,
    "http://127.0.0.1.evil.example": 403,
    "http://evil.example#127.0.0.1": 403,
    "null": 403,
    "": 403,
    "127.0.0.1": 403,
    "http://[evil": 403,
}


async def test_only_neighbours_are_answered(served: Served, visit: Visit) -> None:
    table = {("Host", host): status for host, status in HOSTS.items()}
    port = served.info.url.rpartition(":")[2]
    table |= {("Origin", origin.replace("{port}", port)): status for origin, status in ORIGINS.items()}
    operator = visit(served.workbench.operator_token)
    for (name, value), status in table.items():
        for method, path in (("GET", "/health"), ("POST", "/api/ops/ping"), ("POST", "/mcp")):
            response = await operator.request(method, path, headers={name: value})
            if status != 200:
                assert error_of(response) == (status, f"BAD_{name.upper()}"), (value, path)
            elif path != "/mcp":
                assert response.status_code == 200, (value, path)


async def test_a_wrong_token_opens_less_than_none(visit: Visit) -> None:
    stranger, impostor = visit(), visit(WRONG)
    assert (await stranger.post("/api/ops/ping")).status_code == 200
    for response in (
        await impostor.post("/api/ops/ping"),
        await impostor.get("/health"),
        await impostor.get("/api/ops"),
        await impostor.get("/api/events"),
        await impostor.post("/mcp"),
    ):
        assert error_of(response) == (401, "INVALID_TOKEN")
    assert error_of(await visit("wbo_" + "x" * 43).get("/health")) == (401, "INVALID_TOKEN")


async def test_the_scheme_of_a_token_is_bearer_in_any_case(served: Served, visit: Visit) -> None:
    for value, status in {"bearer {}": 200, "BEARER  {}": 200, "Basic {}": 401, "{}": 401, "Token {}": 401}.items():
        headers = {"Authorization": value.format(served.workbench.operator_token)}
        assert (await visit().post("/api/ops/whoami", headers=headers)).status_code == status, value


# Operations


async def test_a_result_comes_as_data(served: Served, visit: Visit, admit: Admit) -> None:
    ada = await admit("ada")
    response = await visit(ada.token).post("/api/ops/whoami", json={})
    assert response.json() == {"success": True, "data": await served.workbench.dispatch(ada.caller, "whoami", {})}


async def test_each_family_of_errors_has_its_status(visit: Visit, admit: Admit, served: Served) -> None:
    ada = visit((await admit("ada")).token)
    operator = visit(served.workbench.operator_token)
    await operator.post("/api/ops/create_task", json={"title": "Task", "persona_id": "tester"})
    for _ in range(2):
        await visit().post("/api/ops/register", json={"name": "Eve"})
    assert [
        error_of(await ada.post("/api/ops/get_task", json={"task_id": "one"})),
        error_of(await visit().post("/api/ops/whoami", json={})),
        error_of(await ada.post("/api/ops/approve", json={"approval_id": 1})),
        error_of(await ada.post("/api/ops/get_task", json={"task_id": 99})),
        error_of(await ada.post("/api/ops/claim_task", json={"task_id": 1})),
        error_of(await visit().post("/api/ops/register", json={"name": "Eve"})),
    ] == [
        (400, "INVALID_ARGUMENTS"),
        (401, "TOKEN_REQUIRED"),
        (403, "FORBIDDEN"),
        (404, "TASK_NOT_FOUND"),
        (409, "TASK_NOT_CLAIMABLE"),
        (503, "TOO_MANY_PENDING"),
    ]


async def test_an_operation_that_is_not_there_is_not_found(served: Served) -> None:
    async with HttpClient(served.info.url) as client:
        for name in ("no_such_operation", "a/b", "", "%", "é", "ping?x=1", "ping/", " "):
            with pytest.raises(WorkbenchError) as caught:
                await client.call(name)
            assert (caught.value.code, caught.value.status) == ("UNKNOWN_OPERATION", 404)
            assert repr(name) in caught.value.message


async def test_what_is_not_there_and_what_is_not_done_so_have_codes(visit: Visit) -> None:
    for method, path in {
        "GET": "/api/ops/ping",
        "POST": "/health",
        "PUT": "/projects",
        "DELETE": "/api/openapi.json",
    }.items():
        response = await visit().request(method, path)
        assert error_of(response) == (405, "METHOD_NOT_ALLOWED"), path
        assert sorted(response.headers["Allow"].split(", ")) == response.json()["error"]["details"]["allowed"]
    for path in ("/no/such/page", "/", "/api", "/api/projects/a/b", "/ws/me"):
        assert error_of(await visit().get(path)) == (404, "NO_SUCH_ENDPOINT"), path


BODIES: dict[str, tuple[bytes, tuple[int, str] | None]] = {
    "nothing": (b"", None),
    "an empty object": (b"{}", None),
    "spaces": (b" { } ", None),
    "no JSON": (b"hello", (400, "BAD_MESSAGE")),
    "half an object": (b'{"a": ', (400, "BAD_MESSAGE")),
    "an array": (b"[]", (400, "BAD_MESSAGE")),
    "a number": (b"5", (400, "BAD_MESSAGE")),
    "null": (b"null", (400, "BAD_MESSAGE")),
    "no UTF-8": (b'{"a": "\xff"}', (400, "BAD_MESSAGE")),
    "too many levels": (b"[" * 2_000, (400, "BAD_MESSAGE")),
    "an unknown field": (b'{"a": 1}', (400, "INVALID_ARGUMENTS")),
    "NaN": (b'{"a": NaN}', (400, "INVALID_ARGUMENTS")),
    "half a character": (b'{"a": "\\ud800"}', (400, "INVALID_ARGUMENTS")),
    "as much as is allowed": (b"{" + b" " * 2_046 + b"}", None),
    "one byte more": (b"{" + b" " * 2_047 + b"}", (400, "TOO_LARGE")),
    "much more": (b" " * 3_000_000, (400, "TOO_LARGE")),
}


async def test_a_body_is_an_object_of_bounded_size(visit: Visit) -> None:
    for what, (body, refused) in BODIES.items():
        response = await visit().post("/api/ops/ping", content=body)
        if refused is None:
            assert response.json() == {"success": True, "data": {"ok": True}}, what
        else:
            assert error_of(response) == refused, what


async def test_the_size_is_counted_also_when_it_is_not_declared(visit: Visit) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1_000

    assert error_of(await visit().post("/api/ops/ping", content=pieces())) == (400, "TOO_LARGE")


async def test_no_stranger_can_spoil_the_operators_desk(served: Served, visit: Visit) -> None:
    """Whatever is registered, or refused, can be listed afterwards."""
    for bad in BAD.values():
        with pytest.raises(WorkbenchError, match="INVALID_ARGUMENTS"):
            await served.workbench.call("register", name="Mallory", capabilities={"x": bad})
    for text in (b'{"x": NaN}', b'{"x": "\\ud800"}', b'{"x": ' + b"[" * 300 + b"]" * 300 + b"}"):
        body = b'{"name": "Mallory", "capabilities": ' + text + b"}"
        assert error_of(await visit().post("/api/ops/register", content=body)) == (400, "INVALID_ARGUMENTS")
    await visit().post("/api/ops/register", json={"name": "Ada ö🐧", "capabilities": {"ok": [[["\u2028"]]]}})
    operator = visit(served.workbench.operator_token)
    agents = (await operator.post("/api/ops/list_agents")).json()["data"]["agents"]
    approvals = (await operator.post("/api/ops/list_approvals")).json()["data"]["approvals"]
    assert [a["name"] for a in agents] == [a["payload"]["name"] for a in approvals] == ["Ada ö🐧"]


async def test_the_catalogue_shows_what_the_caller_may_call(served: Served, visit: Visit, admit: Admit) -> None:
    ada = await admit("ada")
    for token, level in {None: Level.ANONYMOUS, ada.token: Level.WORKER}.items():
        listed = (await visit(token).get("/api/ops")).json()["data"]["operations"]
        expected = [op.name for op in served.workbench.catalogue.values() if op.permits(Caller(level, "ada"))]
        assert [op["name"] for op in listed] == expected
        assert all(op["help"] and op["input_schema"]["type"] == "object" for op in listed)


# Events


async def test_events_are_listed_after_one_and_by_kind(served: Served, visit: Visit, admit: Admit) -> None:
    ada = visit((await admit("ada")).token)
    operator = visit(served.workbench.operator_token)
    assert (await ada.post("/api/ops/whoami")).status_code == 200  # it becomes active
    every = (await operator.get("/api/events", params={"limit": 1000})).json()["data"]["events"]
    assert every == (await served.workbench.call("list_events", limit=1_000))["events"]
    chosen = {"after": str(every[0]["id"]), "kinds": "agent.*,approval.approved", "limit": "1000"}
    page = (await operator.get("/api/events", params=chosen)).json()["data"]
    kinds = [event["kind"] for event in page["events"]]
    assert kinds == [e["kind"] for e in every[1:] if e["kind"].startswith("agent.") or e["kind"] == "approval.approved"]
    assert {"agent.registered", "agent.assigned", "approval.approved"} <= set(kinds)
    assert page["next_after"] == every[-1]["id"]
    newest = await operator.get("/api/events", params={"after": "null"})
    assert newest.json()["data"] == {"events": [], "next_after": every[-1]["id"]}
    others = (await operator.get("/api/events", params={"mine": "false", "limit": 1000})).json()["data"]["events"]
    assert others == [event for event in every if event["actor"] != "operator"]
    assert len(every) > len(others) > 0
    assert error_of(await ada.get("/api/events", params={"after": "soon"})) == (400, "INVALID_ARGUMENTS")
    assert error_of(await ada.get("/api/events", params={"colour": "red"})) == (400, "INVALID_ARGUMENTS")
    assert error_of(await visit().get("/api/events")) == (401, "TOKEN_REQUIRED")


@asynccontextmanager
async def followed(
    client: httpx2.AsyncClient, after: int | None = 0, **headers: str
) -> AsyncIterator[AsyncIterator[dict[str, str]]]:
    """The events of a stream as they come, as fields."""

    async def fields(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, str]]:
        found: dict[str, str] = {}
        async for line in lines:
            if line:
                name, _, value = line.partition(": ")
                found[name] = value
            elif found:
                yield found
                found = {}

    accept = {"Accept": "text/event-stream"}
    wanted = {"kinds": "task.*"} | ({} if after is None else {"after": after})
    async with client.stream("GET", "/api/events", params=wanted, headers=accept | headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        yield fields(response.aiter_lines())


async def test_a_stream_of_events_goes_on_and_is_resumed(served: Served, visit: Visit, admit: Admit) -> None:
    ada = visit((await admit("ada")).token)

    async def create(title: str) -> None:
        await served.workbench.call("create_task", title=title, persona_id="tester")

    await create("First")
    async with followed(ada) as events:
        seen = [await anext(events)]
        await create("Second")
        seen.append(await anext(events))
    assert [e["event"] for e in seen] == ["task.created", "task.created"]
    assert [json.loads(e["data"])["data"]["title"] for e in seen] == ["First", "Second"]
    assert [json.loads(e["data"])["id"] for e in seen] == [int(e["id"]) for e in seen]
    await create("Third")
    async with followed(ada, **{"Last-Event-ID": seen[0]["id"]}) as events:
        assert await anext(events) == seen[1]
        assert json.loads((await anext(events))["data"])["data"]["title"] == "Third"
    async with followed(ada, None) as events:
        await create("Fourth")
        assert json.loads((await anext(events))["data"])["data"]["title"] == "Fourth"
    refused = await ada.get("/api/events", headers={"Accept": "text/event-stream", "Last-Event-ID": "soon"})
    assert error_of(refused) == (400, "INVALID_ARGUMENTS")


async def test_revoking_ends_an_agents_stream(served: Served, visit: Visit, admit: Admit) -> None:
    ada = await admit("ada")
    await served.workbench.call("create_task", title="Seen", persona_id="tester")
    async with followed(visit(ada.token)) as events:
        assert (await anext(events))["event"] == "task.created"
        await served.workbench.call("revoke_agent", agent_id="ada")
        assert [event async for event in events] == []
    assert error_of(await visit(ada.token).get("/api/events")) == (401, "INVALID_TOKEN")


async def test_whoever_follows_the_feed_is_connected(served: Served, visit: Visit, admit: Admit) -> None:
    ada = visit((await admit("ada")).token)
    await served.workbench.call("create_task", title="Seen", persona_id="tester")

    async def shown() -> tuple[str, str, int]:
        agent = await served.workbench.call("get_agent", agent_id="ada")
        return agent["status"], agent["registration_status"], agent["connections"]

    assert await shown() == ("disconnected", "assigned", 0)
    async with followed(ada) as events:
        await anext(events)
        assert await shown() == ("connected", "active", 1)
    await served.workbench.call("list_events", kinds=["agent.deactivated"], after=0, wait_seconds=30)
    assert await shown() == ("disconnected", "inactive", 0)


async def test_a_stream_shows_only_what_its_agent_may_see_by_now(
    served: Served, visit: Visit, admit: Admit, settings: Settings
) -> None:
    ada = visit((await admit("ada")).token)
    await served.workbench.call("create_task", title="Seen", persona_id="tester")
    async with followed(ada) as events:
        await anext(events)
        await served.workbench.call("update_agent_tool", tool_id="read", enabled=False)
        await served.workbench.call("update_agent", agent_id="ada", changes={"tool": "read"})
        await served.workbench.call("create_task", title="While it was asked for", persona_id="tester")
        if (event := await anext(events))["event"] == "task.created":  # the request was under way
            await served.workbench.call("create_task", title="After", persona_id="tester")
            event = await anext(events)
        assert event["event"] == "error"


async def test_a_token_that_was_replaced_ends_its_stream(served: Served, visit: Visit, admit: Admit) -> None:
    for change in ("issue_token", "delete_agent"):
        ada = await admit(change)
        await served.workbench.call("create_task", title="Seen", persona_id="tester")
        async with followed(visit(ada.token)) as events:
            await anext(events)
            await served.workbench.call(change, agent_id=change)
            async for event in events:
                assert event["event"] == "task.created"


async def test_nobody_waits_for_a_client_that_left(served: Served, visit: Visit) -> None:
    operator = visit(served.workbench.operator_token)
    for method, path in (("POST", "/api/ops/list_events"), ("GET", "/api/events?after=null&wait_seconds=30")):
        body = {"after": None, "wait_seconds": 30} if method == "POST" else None
        asking = asyncio.create_task(operator.request(method, path, json=body))
        await waited_for(served.workbench)
        asking.cancel()
        while served.workbench.feed.readers:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("change", ["revoke_agent", "issue_token", "delete_agent"])
async def test_a_long_poll_ends_with_its_token(served: Served, visit: Visit, admit: Admit, change: str) -> None:
    ada = await admit("ada")
    await served.workbench.call("create_task", title="Count", persona_id="tester")
    polls: dict[str, dict[str, object]] = {
        "list_events": {"after": None, "kinds": ["task.created"], "wait_seconds": 30},
        "heartbeat_and_get_tasks": {"wait_seconds": 30},
        "wait_for_task": {"task_id": 1},  # waits 30 seconds unless it gets a time
    }
    asking = [
        asyncio.create_task(visit(ada.token).post(f"/api/ops/{name}", json=arguments))
        for name, arguments in polls.items()
    ]
    async with McpClient(served.info.mcp_url, ada.token) as tools:
        calling = asyncio.create_task(tools.call("heartbeat_and_get_tasks", wait_seconds=30))
        while served.workbench.feed.readers < 4:
            await asyncio.sleep(0.001)
        await served.workbench.call(change, agent_id="ada")
        await served.workbench.call("create_task", title="Not hers to see", persona_id="implementer")
        for asked in asking:
            assert error_of(await asked) == (401, "INVALID_TOKEN")
        with pytest.raises(WorkbenchError, match="INVALID_TOKEN"):
            await calling


async def test_stopping_amid_a_stream_and_a_long_poll_is_quiet(
    served: Served, visit: Visit, admit: Admit, caplog: pytest.LogCaptureFixture
) -> None:
    ada = await admit("ada")
    await served.workbench.call("create_task", title="Seen", persona_id="tester")
    async with followed(visit(ada.token)) as events:
        await anext(events)
        asked = {"after": None, "wait_seconds": 30}
        asking = asyncio.create_task(visit(ada.token).post("/api/ops/list_events", json=asked))
        while served.workbench.feed.readers < 2:  # the stream, and the other one
            await asyncio.sleep(0.001)
        await served.servers.stop()
        assert [event async for event in events] == []
        assert error_of(await asking) == (503, "NO_SERVER")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert (await served.workbench.call("get_agent", agent_id="ada"))["connections"] == 0


async def test_a_client_raises_what_the_server_raised(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    async with HttpClient(served.info.url, ada.token) as client:
        assert await client.nonce() == served.info.nonce
        with pytest.raises(WorkbenchError) as caught:
            await client.call("get_task", task_id="one")
        assert caught.value.details["problems"][0]["field"] == "task_id"
        for arguments in ({"x": float("nan")}, {"x": "\ud800"}, {"x": object()}):
            with pytest.raises(WorkbenchError, match="INVALID_ARGUMENTS"):
                await client.call("whoami", **arguments)
    async with HttpClient(served.info.url, WRONG) as client:
        assert await client.nonce() == served.info.nonce
    await served.servers.stop()
    async with HttpClient(served.info.url, ada.token) as client:
        assert await client.nonce() is None
        with pytest.raises(WorkbenchError, match="NO_SERVER"):
            await client.call("whoami")


async def test_an_agent_that_asks_for_anything_over_http_is_active(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    assert (await served.workbench.call("get_agent", agent_id="ada"))["registration_status"] == "assigned"
    async with httpx2.AsyncClient(base_url=served.info.url, headers={"Authorization": f"Bearer {ada.token}"}) as http:
        await http.post("/api/ops/whoami")
        agent = await served.workbench.call("get_agent", agent_id="ada")
        assert (agent["registration_status"], agent["presence"]) == ("active", "idle")
        newest = (await served.workbench.call("list_events", after=None))["next_after"]
        await http.post("/api/ops/whoami")
        again = await served.workbench.call("list_events", after=newest)
    assert again["events"] == [], "it is noted once in a while, not each time"


async def test_a_decision_over_http_has_the_name_of_the_person(served: Served, visit: Visit) -> None:
    await served.workbench.call("register", name="ada")
    operator = visit(served.workbench.operator_token)
    [asked] = (await served.workbench.call("list_approvals"))["approvals"]
    response = await operator.post("/api/ops/approve", json={"approval_id": asked["id"]})
    assert response.status_code == 200
    decided = await served.workbench.call("get_approval", approval_id=asked["id"])
    assert decided["person"] == getpass.getuser()

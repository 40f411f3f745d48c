"""The HTTP endpoints, asked by a real client."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import httpx2
import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.conftest import followed as waited_for
from tests.rules.wire.test_json_safety import BAD
from tests.shells.conftest import Visit, error_of
from workbench.client import HttpClient, McpClient
from workbench.errors import WorkbenchError
from workbench.model import Level
from workbench.ops import Caller
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

WRONG = f"wba_{'x' * 43}"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The settings of a fresh project, where little is large."""
    return settings.model_copy(update={"max_frame_bytes": 2_048, "max_pending_agents": 2})


# Who may knock


async def test_anybody_may_check_the_health_of_the_server(served: Served, visit: Visit) -> None:
    for path in ("/health", "/healthz"):
        response = await visit().get(path)
        assert (response.status_code, response.json()) == (200, {"status": "ok", "nonce": served.info.nonce})


HOSTS = dict.fromkeys(("127.0.0.1", "127.0.0.1:80", "localhost:1234", "LOCALHOST", "[::1]:8765"), 200) | dict.fromkeys(
    ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8765", "127.0.0.2", "0.0.0.0", "[evil", ""), 400
)
OWN = ("http://127.0.0.1:{port}", "http://localhost:{port}", "http://[::1]:{port}")
FOREIGN = (
    *("http://localhost:8888", "http://127.0.0.1:3000", "http://localhost", "https://localhost", "127.0.0.1"),
    *("http://localhost:99999", "file://localhost:{port}", "http://evil.example", "http://127.0.0.1.evil.example"),
    *("http://evil.example#127.0.0.1", "http://[evil", "null", ""),
)
ORIGINS = dict.fromkeys(OWN, 200) | dict.fromkeys(FOREIGN, 403)


async def test_only_local_hosts_and_origins_are_answered(served: Served, operator: httpx2.AsyncClient) -> None:
    table = {("Host", host): status for host, status in HOSTS.items()}
    port = served.info.url.rpartition(":")[2]
    table |= {("Origin", origin.replace("{port}", port)): status for origin, status in ORIGINS.items()}
    for (name, value), status in table.items():
        for method, path in (("GET", "/health"), ("POST", "/api/ops/ping"), ("POST", "/mcp")):
            response = await operator.request(method, path, headers={name: value})
            if status != 200:
                assert error_of(response) == (status, f"BAD_{name.upper()}"), (value, path)
            elif path != "/mcp":
                assert response.status_code == 200, (value, path)


async def test_a_request_with_a_wrong_token_is_refused_everywhere(visit: Visit) -> None:
    assert (await visit().post("/api/ops/ping")).status_code == 200
    for asked in ("POST /api/ops/ping", "GET /health", "GET /api/ops", "GET /api/events", "POST /mcp"):
        assert error_of(await visit(WRONG).request(*asked.split())) == (401, "INVALID_TOKEN")
    assert error_of(await visit("wbo_" + "x" * 43).get("/health")) == (401, "INVALID_TOKEN")


async def test_the_scheme_of_a_token_is_bearer_in_any_case(served: Served, visit: Visit) -> None:
    for value, status in {"bearer {}": 200, "BEARER  {}": 200, "Basic {}": 401, "{}": 401, "Token {}": 401}.items():
        headers = {"Authorization": value.format(served.workbench.operator_token)}
        assert (await visit().post("/api/ops/whoami", headers=headers)).status_code == status, value


# Operations


async def test_a_result_is_in_the_field_data(served: Served, visit: Visit, admit: Admit) -> None:
    ada = await admit("ada")
    response = await visit(ada.token).post("/api/ops/whoami", json={})
    assert response.json() == {"success": True, "data": await served.workbench.dispatch(ada.caller, "whoami", {})}


async def test_each_family_of_errors_has_its_status(visit: Visit, admit: Admit, operator: httpx2.AsyncClient) -> None:
    ada = visit((await admit("ada")).token)
    await operator.post("/api/ops/create_task", json={"title": "Task", "persona_id": "tester"})
    for _ in range(2):
        await visit().post("/api/ops/register", json={"name": "Eve"})
    for client, name, arguments, refused in (
        (ada, "get_task", {"task_id": "one"}, (400, "INVALID_ARGUMENTS")),
        (visit(), "whoami", {}, (401, "TOKEN_REQUIRED")),
        (ada, "approve", {"approval_id": 1}, (403, "FORBIDDEN")),
        (ada, "get_task", {"task_id": 99}, (404, "TASK_NOT_FOUND")),
        (ada, "claim_task", {"task_id": 1}, (409, "TASK_NOT_CLAIMABLE")),
        (visit(), "register", {"name": "Eve"}, (503, "TOO_MANY_PENDING")),
    ):
        assert error_of(await client.post(f"/api/ops/{name}", json=arguments)) == refused


async def test_an_unknown_operation_is_not_found(served: Served) -> None:
    async with HttpClient(served.info.url) as client:
        for name in ("no_such_operation", "a/b", "", "%", "é", "ping?x=1", "ping/", " "):
            with pytest.raises(WorkbenchError) as caught:
                await client.call(name)
            assert (caught.value.code, caught.value.status) == ("UNKNOWN_OPERATION", 404)
            assert repr(name) in caught.value.message


async def test_an_unknown_path_and_a_wrong_method_have_codes(visit: Visit) -> None:
    for path in ("GET /api/ops/ping", "POST /health", "PUT /projects", "DELETE /api/openapi.json"):
        response = await visit().request(*path.split())
        assert error_of(response) == (405, "METHOD_NOT_ALLOWED"), path
        assert sorted(response.headers["Allow"].split(", ")) == response.json()["error"]["details"]["allowed"]
    for path in ("/no/such/page", "/", "/api", "/api/projects/a/b", "/ws/me"):
        assert error_of(await visit().get(path)) == (404, "NO_SUCH_ENDPOINT"), path


NOT_JSON, MISFIT, TOO_LARGE = (400, "BAD_MESSAGE"), (400, "INVALID_ARGUMENTS"), (400, "TOO_LARGE")
BODIES: dict[tuple[int, str] | None, list[bytes]] = {
    None: [b"", b"{}", b" { } ", b"{" + b" " * 2_046 + b"}"],
    NOT_JSON: [b"hello", b'{"a": ', b"[]", b"5", b"null", b'{"a": "\xff"}', b"[" * 2_000],
    MISFIT: [b'{"a": 1}', b'{"a": NaN}', b'{"a": "\\ud800"}'],
    TOO_LARGE: [b"{" + b" " * 2_047 + b"}", b" " * 3_000_000],
}


async def test_a_body_is_an_object_of_bounded_size_even_if_that_is_not_declared(visit: Visit) -> None:
    for refused, bodies in BODIES.items():
        for body in bodies:
            response = await visit().post("/api/ops/ping", content=body)
            if refused is None:
                assert response.json() == {"success": True, "data": {"ok": True}}, body[:50]
            else:
                assert error_of(response) == refused, body[:50]

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1_000

    assert error_of(await visit().post("/api/ops/ping", content=pieces())) == TOO_LARGE


async def test_no_registration_of_a_stranger_breaks_a_list_of_the_operator(
    served: Served, visit: Visit, operator: httpx2.AsyncClient
) -> None:
    """Any registration, accepted or refused, leaves lists that can be read."""
    for bad in BAD.values():
        with pytest.raises(WorkbenchError, match="INVALID_ARGUMENTS"):
            await served.workbench.call("register", name="Mallory", capabilities={"x": bad})
    for text in (b'{"x": NaN}', b'{"x": "\\ud800"}', b'{"x": ' + b"[" * 300 + b"]" * 300 + b"}"):
        body = b'{"name": "Mallory", "capabilities": ' + text + b"}"
        assert error_of(await visit().post("/api/ops/register", content=body)) == (400, "INVALID_ARGUMENTS")
    await visit().post("/api/ops/register", json={"name": "Ada ö🐧", "capabilities": {"ok": [[["\u2028"]]]}})
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


async def test_events_are_listed_after_one_and_by_kind(
    served: Served, visit: Visit, admit: Admit, operator: httpx2.AsyncClient
) -> None:
    ada = visit((await admit("ada")).token)
    for _ in range(2):
        assert (await ada.post("/api/ops/whoami")).status_code == 200
    agent = await served.workbench.call("get_agent", agent_id="ada")
    assert (agent["registration_status"], agent["presence"]) == ("active", "idle")
    every = (await operator.get("/api/events", params={"limit": 1000})).json()["data"]["events"]
    assert every == (await served.workbench.call("list_events", limit=1_000))["events"]
    chosen = {"after": str(every[0]["id"]), "kinds": "agent.*,approval.approved", "limit": "1000"}
    page = (await operator.get("/api/events", params=chosen)).json()["data"]
    kinds = [event["kind"] for event in page["events"]]
    assert kinds == [e["kind"] for e in every[1:] if e["kind"].startswith("agent.") or e["kind"] == "approval.approved"]
    assert {"agent.registered", "agent.assigned", "approval.approved"} <= set(kinds)
    assert len(kinds) == len(set(kinds)), "that it was active is noted once in a while, not each time"
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


async def test_a_stream_of_events_is_live_and_can_be_resumed(served: Served, visit: Visit, admit: Admit) -> None:
    ada, create = visit((await admit("ada")).token), partial(given.task, served.workbench)
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


@pytest.mark.parametrize("change", ["revoke_agent", "issue_token", "delete_agent"])
async def test_a_stream_ends_with_its_token(served: Served, visit: Visit, admit: Admit, change: str) -> None:
    ada = await admit("ada")
    await given.task(served.workbench)
    async with followed(visit(ada.token)) as events:
        assert (await anext(events))["event"] == "task.created"
        await served.workbench.call(change, agent_id="ada")
        assert [event async for event in events] == []
    assert error_of(await visit(ada.token).get("/api/events")) == (401, "INVALID_TOKEN")


async def test_an_agent_that_follows_the_feed_is_connected(served: Served, visit: Visit, admit: Admit) -> None:
    ada = visit((await admit("ada")).token)
    await given.task(served.workbench)

    async def shown() -> tuple[str, str, int]:
        agent = await served.workbench.call("get_agent", agent_id="ada")
        return agent["status"], agent["registration_status"], agent["connections"]

    assert await shown() == ("disconnected", "assigned", 0)
    async with followed(ada) as events:
        await anext(events)
        assert await shown() == ("connected", "active", 1)
    await served.workbench.call("list_events", kinds=["agent.deactivated"], after=0, wait_seconds=30)
    assert await shown() == ("disconnected", "inactive", 0)


async def test_a_stream_shows_only_events_that_its_agent_may_see_now(
    served: Served, visit: Visit, admit: Admit
) -> None:
    ada = visit((await admit("ada")).token)
    await given.task(served.workbench)
    async with followed(ada) as events:
        await anext(events)
        await served.workbench.call("update_agent_tool", tool_id="read", enabled=False)
        await served.workbench.call("update_agent", agent_id="ada", changes={"tool": "read"})
        await given.task(served.workbench, "While it was asked for", "tester")
        if (event := await anext(events))["event"] == "task.created":  # the request was under way
            await given.task(served.workbench, "After", "tester")
            event = await anext(events)
        assert event["event"] == "error"


async def test_nobody_waits_for_a_client_that_left(served: Served, operator: httpx2.AsyncClient) -> None:
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
    await given.task(served.workbench, "Count", "tester")
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
        await given.task(served.workbench, "Not hers to see")
        for asked in asking:
            assert error_of(await asked) == (401, "INVALID_TOKEN")
        with pytest.raises(WorkbenchError, match="INVALID_TOKEN"):
            await calling


async def test_a_client_raises_what_the_server_raised(served: Served, admit: Admit) -> None:
    async with HttpClient(served.info.url, (await admit("ada")).token) as client:
        assert await client.nonce() == served.info.nonce
        with pytest.raises(WorkbenchError) as caught:
            await client.call("get_task", task_id="one")
        assert caught.value.details["problems"][0]["field"] == "task_id"
        await served.servers.stop()
        assert await client.nonce() is None
        with pytest.raises(WorkbenchError, match="NO_SERVER"):
            await client.call("whoami")


async def test_a_decision_over_http_has_the_name_of_the_person(served: Served, operator: httpx2.AsyncClient) -> None:
    approval = {"approval_id": (await served.workbench.call("register", name="ada"))["approval_id"]}
    assert (await operator.post("/api/ops/approve", json=approval)).status_code == 200
    assert (await served.workbench.call("get_approval", **approval))["person"] == getpass.getuser()

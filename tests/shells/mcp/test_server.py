"""The MCP endpoint, spoken to by the library's own client, in both eras of the protocol."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, Implementation, ListToolsResult

from tests.conftest import Admit, Served
from tests.shells.mcp.sessions import ERAS, session
from workbench.app import Workbench
from workbench.client import McpClient
from workbench.errors import WorkbenchError
from workbench.model import Level
from workbench.ops import OPERATOR, Caller
from workbench.rules.tools.surroundings import Surroundings
from workbench.services.tools.tool import ToolInfo, ToolOutcome
from workbench.shells.gate import RequestGate
from workbench.shells.mcp import server
from workbench.shells.mcp.backend import Context
from workbench.shells.mcp.tasks import McpTasks, TaskLimits
from workbench.shells.mcp.tools import FIRST_CHOICE

pytestmark = pytest.mark.anyio

WRONG = f"wba_{'x' * 43}"


async def tools_of(served: Served, token: str | None = None, era: str = "auto") -> ListToolsResult:
    async with session(served, token, era) as client:
        return await client.list_tools()


def names(listed: ListToolsResult) -> list[str]:
    return [tool.name for tool in listed.tools]


def expected(served: Served, level: Level) -> list[str]:
    """The tools that a caller at a level is offered."""
    everything = served.workbench.catalogue.values()
    caller = OPERATOR if level is Level.OPERATOR else Caller(level, "ada")
    return [op.name for op in everything if op.tool and op.allow >= Level.READ and op.permits(caller)]


async def test_a_stranger_is_offered_only_tools_to_register_and_to_wait(served: Served, era: str) -> None:
    async with session(served, era=era) as client:
        assert names(await client.list_tools()) == ["register", "registration_status"]
        structured_content = (await client.call_tool("register", {"name": "Ada"})).structured_content
        assert structured_content is not None
        waiting = await client.call_tool("registration_status", {"token": structured_content["token"]})
        assert waiting.structured_content is not None
        assert waiting.structured_content["status"] == "pending"


async def test_the_offered_tools_depend_on_the_token_alone(served: Served, admit: Admit, era: str) -> None:
    agents = [await admit("eve", tool="read"), await admit("ada"), await admit("pam", role="planner")]
    known = [*(agent.token for agent in agents), served.workbench.operator_token]
    tokens = dict(zip((Level.READ, Level.WORKER, Level.PLANNER, Level.OPERATOR), known, strict=True))
    for level, token in tokens.items():
        assert names(await tools_of(served, token, era)) == expected(served, level)
    bob = await admit("bob", persona_id="tester")
    assert await tools_of(served, bob.token, era) == await tools_of(served, tokens[Level.WORKER], era)
    sizes = [len(expected(served, level)) for level in tokens]
    assert sizes == sorted(set(sizes))


async def test_a_session_sees_no_more_tools_after_its_agent_was_admitted(served: Served, era: str) -> None:
    async with session(served, era=era) as client:
        structured_content = (
            await client.call_tool("register", {"name": "Ada", "persona_id": "planner"})
        ).structured_content
        assert structured_content is not None
        before = await tools_of(served, structured_content["token"], era)
        await served.workbench.call("approve", approval_id=structured_content["approval_id"])
        assert names(await client.list_tools(cache_mode="refresh")) == ["register", "registration_status"]
    assert names(before) == ["register", "registration_status"]
    assert names(await tools_of(served, structured_content["token"], era)) == expected(served, Level.PLANNER)


async def test_every_tool_has_a_description_and_hints(served: Served, admit: Admit) -> None:
    catalogue = served.workbench.catalogue
    await served.workbench.call("agent_create", agentPath="./agents/reviewer", name="reviewer")
    tokens = (None, served.workbench.operator_token, (await admit("ada", definition="reviewer")).token)
    listed = [tool for token in tokens for tool in (await tools_of(served, token)).tools]
    assert {tool.name for tool in listed} == {op.name for op in catalogue.values() if op.tool}
    for tool in listed:
        op = catalogue[tool.name]
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is op.reads
        assert tool.annotations.destructive_hint is op.destructive
        assert tool.annotations.open_world_hint is False
        assert (tool.title, tool.description) == (op.title, op.help)
        assert (tool.input_schema, tool.output_schema) == (op.input_schema, op.output_schema)
        assert tool.meta == ({"anthropic/alwaysLoad": True} if op.name in FIRST_CHOICE else None)
    assert {tool.name for tool in listed} >= FIRST_CHOICE


async def test_a_result_is_structured_and_the_same_as_text(served: Served, admit: Admit, era: str) -> None:
    async with session(served, (await admit("ada")).token, era) as client:
        assert client.protocol_version == ERAS[era]
        result = await client.call_tool("whoami", {})
    assert result.is_error is not True
    assert result.structured_content is not None
    assert (result.structured_content["agent_id"], result.structured_content["level"]) == ("ada", "worker")
    [text] = result.content
    assert text.type == "text"
    assert json.loads(text.text) == result.structured_content


def error_of(result: CallToolResult) -> dict[str, Any]:
    """The error in a result, which is JSON in its text: structured content would have to fit the output schema."""
    assert result.is_error
    assert result.structured_content is None
    [text] = result.content
    assert text.type == "text"
    body = json.loads(text.text)
    assert body.keys() == {"success", "error"}
    assert body["success"] is False
    error: dict[str, Any] = body["error"]
    return error


ERRORS: list[tuple[str, dict[str, Any], str, int]] = [
    ("get_task", {"task_id": "one"}, "INVALID_ARGUMENTS", 400),
    ("get_task", {"task_id": 1, "colour": "red"}, "INVALID_ARGUMENTS", 400),
    ("get_task", {"task_id": 2**63}, "INVALID_ARGUMENTS", 400),
    ("get_task", {"task_id": 99}, "TASK_NOT_FOUND", 404),
    ("approve", {"approval_id": 1}, "FORBIDDEN", 403),
    ("create_task", {"title": "x", "persona_id": "tester"}, "FORBIDDEN", 403),
]


async def test_an_error_of_a_tool_is_a_result_with_a_code_and_any_other_one_of_the_protocol(
    served: Served, admit: Admit, era: str
) -> None:
    async with session(served, era=era) as client:
        assert error_of(await client.call_tool("whoami", {}))["code"] == "TOKEN_REQUIRED"
    async with session(served, (await admit("ada")).token, era) as client:
        for name, arguments, code, status in ERRORS:
            error = error_of(await client.call_tool(name, arguments))
            assert error.keys() - {"hint"} == {"code", "message", "details", "status"}
            assert (error["code"], error["status"]) == (code, status), name
        for name in ("paint_task", ""):
            with pytest.raises(MCPError) as caught:
                await client.call_tool(name, {})
            assert (caught.value.code, caught.value.data["code"]) == (INVALID_PARAMS, "UNKNOWN_OPERATION")
        lists = (client.list_tools, client.list_resources, client.list_resource_templates, client.list_prompts)
        for listing in lists:
            assert (await listing()).next_cursor is None
            with pytest.raises(MCPError) as caught:
                await listing(cursor="eyJvZmZzZXQiOjEwfQ")
            assert (caught.value.code, caught.value.data["code"]) == (INVALID_PARAMS, "BAD_CURSOR")


async def test_the_integration_is_one_tool_with_two_names(served: Served, admit: Admit) -> None:
    async with session(served, (await admit("pam", role="planner")).token) as client:
        listed = names(await client.list_tools())
        assert "integrate_worktree" in listed
        assert "request_integration" not in listed
        for name in ("integrate_worktree", "request_integration"):
            error = error_of(await client.call_tool(name, {"worktree_name": "nowhere"}))
            assert error["code"] == "WORKTREE_NOT_FOUND", name


class Counting:
    """A backend that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def caller(self, ctx: Context) -> Caller:
        self.asked.append("caller")
        return OPERATOR

    async def guidance(self, ctx: Context) -> str:
        return ""

    async def call(
        self, ctx: Context, name: str, arguments: dict[str, Any], surroundings: Surroundings = Surroundings()
    ) -> dict[str, Any]:
        self.asked.append(name)
        return {}

    async def tools(self, ctx: Context) -> list[ToolInfo]:
        return []

    async def call_tool(
        self, ctx: Context, name: str, arguments: dict[str, Any], surroundings: Surroundings
    ) -> ToolOutcome:
        raise AssertionError


async def test_a_call_does_not_list_the_tools_before(workbench: Workbench) -> None:
    counting, tasks = Counting(), McpTasks(TaskLimits(1.0, 1.0, 1), workbench.store.now)
    manager = StreamableHTTPSessionManager(server.server(workbench.catalogue, counting, tasks))
    app = RequestGate(StreamableHTTPASGIApp(manager), workbench)
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app))
    transport = streamable_http_client("http://127.0.0.1/mcp", http_client=http)
    async with manager.run(), http, Client(transport) as client:
        await client.call_tool("remove_admission_rule", {"name": "guests"})
    assert counting.asked[0] == "remove_admission_rule"


async def test_a_registration_shows_the_name_of_the_client_program(served: Served, era: str) -> None:
    info = Implementation(name="penguin\x1b[31m-cli\u202e", version="1.5" + "0" * 300)
    async with session(served, era=era, client_info=info) as client:
        await client.call_tool("register", {"name": "Ada"})
    [approval] = (await served.workbench.call("list_approvals"))["approvals"]
    assert approval["payload"]["client"] == ("penguin[31m-cli/1.5" + "0" * 300)[:200]
    assert approval["payload"]["address"] == "127.0.0.1"


# Sessions and tokens, as bytes


async def test_an_agent_is_connected_while_its_session_listens(served: Served, admit: Admit) -> None:
    ada = await admit("ada")

    async def status() -> tuple[str, str]:
        agent = await served.workbench.call("get_agent", agent_id="ada")
        return agent["status"], agent["presence"]

    async with served.workbench.feed.subscribe("agent.connected", "agent.disconnected") as events:
        async with session(served, ada.token, "legacy"):
            assert (await anext(events)).data["transport"] == "mcp"
            assert await status() == ("connected", "idle")
        assert (await anext(events)).kind == "agent.disconnected"
        assert (await status())[0] == "disconnected"


def rpc(method: str, number: int | None = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})


INITIALIZE = rpc(
    "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "by hand", "version": "1"}
)


def headers(token: str | None, session_id: str | None = None) -> dict[str, str]:
    sent = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    if session_id is not None:
        sent["Mcp-Session-Id"] = session_id
    return sent | ({"Authorization": f"Bearer {token}"} if token else {})


def plain_http(served: Served) -> httpx2.AsyncClient:
    """A client that knows nothing of MCP."""
    return httpx2.AsyncClient(base_url=served.info.url, trust_env=False, verify=False)


async def open_session(http: httpx2.AsyncClient, token: str | None) -> dict[str, str]:
    answer = await http.post("/mcp", json=INITIALIZE, headers=headers(token))
    return headers(token, answer.headers["Mcp-Session-Id"])


async def test_a_session_works_only_with_the_token_that_opened_it(served: Served, admit: Admit) -> None:
    tokens = [None, (await admit("ada")).token, (await admit("bob")).token, served.workbench.operator_token]
    async with plain_http(served) as http:
        for owner in tokens:
            mine = await open_session(http, owner)
            for thief in tokens:
                if thief != owner:
                    stolen = headers(thief, mine["Mcp-Session-Id"])
                    assert (await http.post("/mcp", json=rpc("tools/list"), headers=stolen)).status_code == 404
                    assert (await http.get("/mcp", headers=stolen)).status_code == 404
                    assert (await http.delete("/mcp", headers=stolen)).status_code == 404
            assert (await http.post("/mcp", json=rpc("tools/list"), headers=mine)).status_code == 200


async def test_a_session_and_its_stream_end_with_the_token_of_its_agent(served: Served, admit: Admit) -> None:
    async with plain_http(served) as http, AsyncExitStack() as on:
        sessions = [await open_session(http, (await admit(name)).token) for name in ("ada", "bob")]
        streams = [await on.enter_async_context(http.stream("GET", "/mcp", headers=mine)) for mine in sessions]
        assert [stream.status_code for stream in streams] == [200, 200]
        for number, (change, name) in enumerate((("revoke_agent", "ada"), ("issue_token", "bob"))):
            assert (await http.post("/mcp", json=rpc("tools/list"), headers=sessions[number])).status_code == 200
            assert not streams[number].is_closed
            await served.workbench.call(change, agent_id=name)
            assert [line async for line in streams[number].aiter_lines()] == []
            refused = await http.post("/mcp", json=rpc("tools/list"), headers=sessions[number])
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, "INVALID_TOKEN")
            assert refused.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


async def test_a_request_that_is_too_large_is_refused_and_the_next_one_is_not(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    large = INITIALIZE | {"padding": "x" * served.workbench.settings.max_frame_bytes}
    async with plain_http(served) as http:
        assert (await http.post("/mcp", json=large, headers=headers(ada.token))).status_code == 413
        assert (await http.post("/mcp", json=INITIALIZE, headers=headers(ada.token))).status_code == 200


# The client that comes with Workbench


async def test_a_client_raises_what_the_server_raised(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    async with McpClient(served.info.mcp_url, ada.token) as client:
        assert await client.tools() == expected(served, Level.WORKER)
        assert (await client.call("whoami"))["agent_id"] == "ada"
        with pytest.raises(WorkbenchError) as caught:
            await client.call("get_task", task_id=99)
        assert (caught.value.code, caught.value.status) == ("TASK_NOT_FOUND", 404)
        await served.workbench.call("revoke_agent", agent_id="ada")
        with pytest.raises(WorkbenchError, match="INVALID_TOKEN"):
            await client.call("whoami")
    async with McpClient(served.info.mcp_url, WRONG) as client:
        with pytest.raises(WorkbenchError, match="INVALID_TOKEN"):
            await client.tools()


async def test_a_client_outlives_a_restart_of_the_server(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    async with McpClient(served.info.mcp_url, ada.token) as client:
        await client.call("whoami")
        await served.servers.stop()
        for _ in range(2):
            with pytest.raises(WorkbenchError, match="NO_SERVER"):
                await client.call("whoami")
        await served.servers.start()
        assert (await client.call("whoami"))["agent_id"] == "ada"

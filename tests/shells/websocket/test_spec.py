"""Spec 1 over real sockets, as a stranger to the code checks it: §5.1, §5.2, and the old clients of §4.2."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests import given
from tests.conftest import Admit, Served
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

WRITING: dict[str, Any] = {
    "resource_type": "contexts",
    "content": {"title": "Test Context", "content": "This is a test context created by the agent"},
}
SUCCESS = "Registration successful. Waiting for human assignment of permanent agent_id."


class Client:
    """A client of spec 1: it sends JSON and hears JSON."""

    def __init__(self, socket: ClientConnection, name: str) -> None:
        self.socket = socket
        self.name = name

    async def hear(self) -> dict[str, Any]:
        heard: dict[str, Any] = json.loads(await self.socket.recv())
        return heard

    async def say(self, what: Any) -> dict[str, Any]:
        """Send anything as JSON; what comes back."""
        await self.socket.send(json.dumps(what))
        return await self.hear()

    async def act(self, action: str, **data: Any) -> dict[str, Any]:
        """Send `[connection, action, data]`; what comes back."""
        return await self.say([self.name, action, data])


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Any]:
    """`await client("test_client_1")`: connected, and the prompt heard."""
    async with AsyncExitStack() as stack:

        async def connected(name: str = "test_client_1", **options: Any) -> Client:
            socket = await stack.enter_async_context(connect(f"{served.info.ws_url}/{name}", **options))
            made = Client(socket, name)
            assert (await made.hear())["type"] == "tool_selection_prompt"
            return made

        yield connected


@pytest.fixture
async def session(served: Served) -> str:
    await given.project(served.workbench)
    return str((await given.session(served.workbench, "Day one"))["id"])


@pytest.fixture
async def old(served: Served, admit: Admit, session: str) -> str:
    """The id of an agent as a migration brings them: it has no token, its id is all it needs."""
    await admit("assigned_agent_123", session_id=session)
    brought = Query("brought", "UPDATE agents SET id_only = 1 WHERE assigned_agent_id = :agent_id")
    await served.workbench.store.write(lambda tx: tx.run(brought, agent_id="assigned_agent_123"))
    await served.workbench.call("update_agent", agent_id="assigned_agent_123", changes={"name": "The old one"})
    return "assigned_agent_123"


# §5.1


async def test_a_new_agent_exchanges_the_messages_of_the_specification(
    served: Served, client: Any, session: str
) -> None:
    operator = await client("gui", subprotocols=["wb.v1", f"bearer.{served.workbench.operator_token}"])
    agent = await client("test_client_1")
    capabilities = {"nlp": True, "vision": False}
    reply = await agent.act("select_tool", tool="register", name="Test Agent", capabilities=capabilities)
    assert (reply["type"], reply["status"], reply["message"]) == ("registration_success", "pending", SUCCESS)
    told = {"type": "new_pending_agent", "agent_id": reply["agent_id"], "name": "Test Agent"}
    assert await operator.hear() == told | {"connection_id": "test_client_1"}

    choices = {"agent_id": "assigned_agent_9", "session_id": session, "tool": "write"}
    approval = {"approval_id": reply["approval_id"], "choices": choices}
    assert (await operator.act("approve", **approval))["type"] == "approve_response"
    assigned = {"type": "agent_assigned", "agent_id": "assigned_agent_9", "session_id": session, "tool": "write"}
    assert await agent.hear() == assigned
    await agent.act("authenticate", agent_id="assigned_agent_9", token=reply["token"])
    assert (await agent.act("write", content={"title": "First", "content": "…"}))["status"] == "success"


async def test_an_agent_reads_and_writes_with_the_messages_of_the_specification(client: Any, old: str) -> None:
    agent = await client("test_client_2")
    reply = await agent.act("select_tool", tool="write")
    assert reply["type"] == "agent_id_required"
    assert reply["message"] == "To use 'write' tool, provide your assigned agent_id"
    assert json.loads(reply["expected_format"])[:2] == ["test_client_2", "authenticate"]
    assert await agent.act("authenticate", agent_id=old) == {
        "type": "authentication_success",
        "agent_id": old,
        "agent_name": "The old one",
        "tool": "write",
        "message": "Authentication successful. You can now use write operations.",
    }

    written = await agent.say([old, "write", WRITING])
    answer = {"type": "write_response", "resource_type": "contexts", "sequence_number": 1, "status": "success"}
    assert written == {**answer, "context_id": written["context_id"]}
    heard = await agent.say([old, "read", {"resource_type": "contexts", "limit": 10}])
    [row] = heard.pop("data")
    page = {"type": "read_response", "resource_type": "contexts", "access_level": "self_only", "count": 1}
    assert heard == page | {"total": None, "next_cursor": None}
    assert row["id"] == written["context_id"]
    assert {"title": row["title"], "content": row["content"]} == WRITING["content"]


REGISTERING_DATA = {"tool": "register", "name": "Test Agent", "capabilities": {"nlp": True, "vision": False}}
REGISTERING = ["test_client_1", "select_tool", REGISTERING_DATA]


async def test_the_scripts_of_the_specification_run_as_they_are(served: Served, old: str) -> None:
    """They authenticate and write without waiting between the two, and leave after the next message they hear."""
    async with connect(f"{served.info.ws_url}/test_client_1") as websocket:
        assert json.loads(await websocket.recv())["type"] == "tool_selection_prompt"
        await websocket.send(json.dumps(REGISTERING))
        assert json.loads(await websocket.recv())["type"] == "registration_success"
    async with connect(f"{served.info.ws_url}/test_client_2") as websocket:
        await websocket.recv()
        await websocket.send(json.dumps(["test_client_2", "select_tool", {"tool": "write"}]))
        assert json.loads(await websocket.recv())["type"] == "agent_id_required"
        await websocket.send(json.dumps(["test_client_2", "authenticate", {"agent_id": old}]))
        await websocket.send(json.dumps([old, "write", WRITING]))
        assert json.loads(await websocket.recv())["type"] == "authentication_success"
        assert json.loads(await websocket.recv())["type"] == "write_response"
    [row] = (await served.workbench.call("read"))["data"]
    assert row["title"] == "Test Context"


async def test_each_message_is_from_the_agent_that_the_earlier_messages_bound(
    client: Any, admit: Admit, old: str, session: str
) -> None:
    other = await admit("other", session_id=session)
    line = await client()
    for frame in (
        [old, "write", {"agent_id": old, "content": {"title": "By the old one"}}],
        {"type": "request_contexts"},
        ["test_client_1", "authenticate", {"agent_id": "other", "token": other.token}],
        ["other", "whoami", {}],
        ["other", "select_tool", {"tool": "read"}],
        ["other", "write", {"content": {"title": "Not any more"}}],
        [old, "whoami", {}],
    ):
        await line.socket.send(json.dumps(frame))
    messages = [await line.hear() for _ in range(7)]
    kinds = ["write_response", "contexts", "authentication_success", "whoami_response", "agent_id_required"]
    assert [reply["type"] for reply in messages] == [*kinds, "error", "error"]
    assert messages[3]["data"]["agent_id"] == "other"
    assert [reply["code"] for reply in messages[5:]] == ["FORBIDDEN", "FORBIDDEN"]


async def test_only_agents_that_a_migration_brought_authenticate_by_id_alone(
    served: Served, client: Any, admit: Admit, old: str
) -> None:
    await admit("modern")
    line = await client()
    refused = await line.act("authenticate", agent_id="modern")
    assert (refused["type"], refused["code"]) == ("error", "TOKEN_REQUIRED")
    refused = await line.act("authenticate", agent_id="nobody")
    assert (refused["code"], refused["message"]) == ("INVALID_AGENT", "Invalid agent_id or agent not found")
    assert (await line.act("authenticate", agent_id=old))["agent_id"] == old
    issued = await served.workbench.call("issue_token", agent_id=old)
    late = await client("late")
    assert (await late.act("authenticate", agent_id=old))["code"] == "TOKEN_REQUIRED"
    assert (await late.act("authenticate", agent_id=old, token=issued["token"]))["agent_id"] == old


# §5.2, WebSocket Communication: the prompt


async def test_the_prompt_is_the_first_message(served: Served) -> None:
    async with connect(f"{served.info.ws_url}/anybody") as socket:
        assert json.loads(await socket.recv()) == {
            "type": "tool_selection_prompt",
            "available_tools": ["register", "read", "write"],
            "message": "Please select a tool to continue: register (new agent), read (read-only access), "
            "write (read-write access)",
        }


# §5.2: the message schema


async def test_an_agent_cannot_speak_as_another(client: Any, admit: Admit, old: str, session: str) -> None:
    other = await admit("other", session_id=session)
    line = await client()
    await line.act("authenticate", agent_id="other", token=other.token)
    for message in (
        [old, "read", {}],
        [old, "write", {"content": {"title": "Forged"}}],
        ["other", "write", {"agent_id": old, "content": {"title": "Forged"}}],
        ["other", "read", {"agent_id": old}],
        ["other", "sing", {"agent_id": old}],
        {"type": "announce", "agent_id": old},
        {"type": "request_contexts", "agent_id": old},
    ):
        reply = await line.say(message)
        assert (reply["type"], reply["code"]) == ("error", "FORBIDDEN"), message
    assert (await line.act("read"))["data"] == []


# §5.2: error handling


async def test_errors_are_worded_as_the_specification_words_them(client: Any, admit: Admit) -> None:
    line = await client()
    pending = await line.act("register", name="Waits")
    for said, code, text in [
        (["x", "select_tool", {"tool": "admin"}], "INVALID_TOOL", "Must be 'register', 'read', or 'write'"),
        (["x", "read", {}], "TOKEN_REQUIRED", "agent_id required for read/write operations"),
        (["x", "write", {"agent_id": ""}], "TOKEN_REQUIRED", "agent_id required for read/write operations"),
        (["x", "write", {"agent_id": "nobody"}], "INVALID_AGENT", "Invalid agent_id or agent not found"),
        (["x", "read", {"agent_id": pending["agent_id"]}], "NOT_ASSIGNED", "Agent not yet assigned by human"),
        (["x", "authenticate", {"token": pending["token"]}], "NOT_ASSIGNED", "Agent not yet assigned by human"),
        (["x", "register", {"name": ""}], "INVALID_ARGUMENTS", "Registration failed: "),
    ]:
        reply = await line.say(said)
        assert (reply["type"], reply["code"]) == ("error", code), said
        assert text in reply["message"]
    await line.act("authenticate", token=(await admit("homeless")).token)
    reply = await line.act("write", content={"title": "Where to?"})
    assert reply["code"] == "SESSION_REQUIRED"
    assert reply["message"].startswith("Write operation failed: ")


async def test_an_error_is_answered_and_the_connection_lives(client: Any) -> None:
    line = await client()
    for text in ("", "null", "7", '"x"', "[]", '["a","b"]', '["a","b",{},{}]', '["a","b",[]]', '["a",1,{}]', "{}"):
        await line.socket.send(text)
        assert (await line.hear())["code"] == "BAD_MESSAGE", text
    await line.socket.send(' \r\n\t["test_client_1", "ping",\n {}] \n')  # any white space may be around
    assert (await line.hear())["type"] == "ping_response"


# §5.2 and §4.2: clients from before


def greeting(agent_id: str, registration: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The answer to an announcement, as the old server gave it; a registration is new."""
    made = registration or {}
    status = {"type": "agent_status", "agent_id": agent_id, "status": made.get("status", "connected")}
    return [status, {"type": "announce_ack", "agent_id": agent_id, **made}]


async def announce(line: Client, agent_id: str, name: str) -> list[dict[str, Any]]:
    return [await line.say({"type": "announce", "agent_id": agent_id, "name": name}), await line.hear()]


async def test_an_old_client_announces_itself_and_asks_for_contexts(
    client: Any, admit: Admit, old: str, session: str
) -> None:
    line, other = await client("legacy"), await client("other")
    assert await announce(line, old, "Old") == greeting(old)
    await line.say([old, "write", {"content": {"title": "Kept"}}])
    await other.act("authenticate", token=(await admit("new", session_id=session)).token)
    await other.act("write", content={"title": "Of another agent"})
    for asked in ({"type": "request_contexts"}, {"type": "request_contexts", "agent_id": old, "limit": 1}):
        reply = await line.say(asked)
        assert reply.keys() == {"type", "agent_id", "results"}
        assert (reply["type"], reply["agent_id"]) == ("contexts", old)
        assert [row["title"] for row in reply["results"]] == ["Kept"]
        assert {"id", "title", "created_at"} <= reply["results"][0].keys()


async def test_an_old_client_gets_five_contexts_unless_it_asks_for_another_number(client: Any, old: str) -> None:
    line = await client("legacy")
    for said in ({"type": "announce", "agent_id": old, "name": "Old"}, {"type": "request_contexts"}):
        await line.socket.send(json.dumps(said))  # without waiting for the answer
    assert [(await line.hear())["type"] for _ in range(3)] == ["agent_status", "announce_ack", "contexts"]
    for number in range(7):
        await line.say([old, "write", {"content": {"title": f"Note {number}"}}])
    assert len((await line.say({"type": "request_contexts", "agent_id": old}))["results"]) == 5
    assert len((await line.say({"type": "request_contexts", "agent_id": old, "limit": 6}))["results"]) == 6


async def test_an_old_client_may_say_with_each_message_who_it_is(client: Any, old: str) -> None:
    line = await client("legacy")
    written = await line.act("write", agent_id=old, resource_type="contexts", content={"title": "Still works"})
    assert written["status"] == "success"
    other = await client("another")
    assert (await other.say({"type": "request_contexts", "agent_id": old}))["results"][0]["title"] == "Still works"


async def test_a_stranger_that_announces_itself_waits_for_a_person(served: Served, client: Any, session: str) -> None:
    line = await client("legacy")
    status, ack = await announce(line, "newcomer", "New")
    made = {key: ack[key] for key in ("status", "token", "approval_id", "message")}
    assert [status, ack] == greeting("newcomer", made)
    assert (ack["status"], ack["message"]) == ("pending", SUCCESS)
    assert (await line.act("write", content={"title": "Too early"}))["code"] == "TOKEN_REQUIRED"
    asked = {"type": "request_contexts", "agent_id": "newcomer"}
    assert (await line.say(asked))["code"] == "NOT_ASSIGNED"
    waiting = {"status": "pending", "message": "Not decided yet. Call again with wait_seconds."}
    assert await announce(line, "newcomer", "New") == greeting("newcomer", waiting)
    [approval] = (await served.workbench.call("list_approvals"))["approvals"]
    assert (approval["payload"]["name"], approval["payload"]["suggested_id"]) == ("New", "newcomer")
    await served.workbench.call("approve", approval_id=ack["approval_id"], choices={"session_id": session})
    assert (await line.hear())["type"] == "agent_assigned"
    assert (await line.say(asked))["results"] == []
    assert await announce(line, "newcomer", "New") == greeting("newcomer")
    another = await client("another")
    assert (await another.act("authenticate", agent_id="newcomer", token=ack["token"]))["agent_name"] == "New"


async def test_an_old_client_that_is_rejected_is_told_why(served: Served, client: Any) -> None:
    line = await client("legacy")
    _, ack = await announce(line, "newcomer", "New")
    await served.workbench.call("reject", approval_id=ack["approval_id"], reason="Not today")
    message = await line.hear()
    assert (message["type"], message["code"], message["reason"]) == ("registration_rejected", "REJECTED", "Not today")
    for said in ({"type": "request_contexts", "agent_id": "newcomer"}, {"type": "announce", "agent_id": "newcomer"}):
        refused = await line.say(said)
        assert (refused["type"], refused["code"], refused["message"]) == ("error", "REJECTED", message["message"])


async def test_an_old_client_that_a_rule_admits_is_connected_at_once(served: Served, client: Any) -> None:
    await served.workbench.call("add_admission_rule", name="friends", pattern="New*")
    line = await client("legacy")
    status, ack = await announce(line, "newcomer", "New")
    assert (status["status"], ack["agent_id"], ack["status"]) == ("connected", "newcomer", "assigned")
    assert (await line.say({"type": "request_contexts", "agent_id": "newcomer"}))["results"] == []


@pytest.mark.parametrize("agent_id", ["Ada Lovelace", "é", "null", "@home/ada", "x" * 200])
async def test_an_imported_agent_works_under_an_id_that_a_new_one_could_not_get(
    served: Served, client: Any, old: str, agent_id: str
) -> None:
    renamed = Query("renamed", "UPDATE agents SET assigned_agent_id = :agent_id WHERE assigned_agent_id = :old")
    await served.workbench.store.write(lambda tx: tx.run(renamed, agent_id=agent_id, old=old))
    line = await client("legacy")
    assert await announce(line, agent_id, "Old") == greeting(agent_id)
    assert (await line.say([agent_id, "write", {"agent_id": agent_id, "content": {"title": "Kept"}}]))["status"]
    assert (await line.say({"type": "request_contexts", "agent_id": agent_id}))["results"][0]["title"] == "Kept"
    kept = {"agent_id": agent_id, "changes": {"agent_id": agent_id, "name": "New"}}
    assert (await served.workbench.call("update_agent", **kept))["agent_id"] == agent_id
    await served.workbench.call("allow_agent", agent_id=agent_id)
    assert (await line.say([agent_id, "whoami", {}]))["data"]["agent_id"] == agent_id
    issued = await served.workbench.call("issue_token", agent_id=agent_id)
    assert (await served.workbench.identify(issued["token"])).name == agent_id


async def test_announcing_an_agent_that_has_a_token_needs_the_token(client: Any, admit: Admit) -> None:
    await admit("modern")
    assert (await (await client()).say({"type": "announce", "agent_id": "modern"}))["code"] == "TOKEN_REQUIRED"


async def test_the_allowlist_excludes_agents_that_are_not_on_it(served: Served, client: Any, old: str) -> None:
    await served.workbench.call("allow_agent", agent_id="somebody")
    line = await client("legacy")
    for agent_id in (old, "newcomer"):
        assert (await line.say({"type": "announce", "agent_id": agent_id}))["code"] == "NOT_ALLOWLISTED"
    assert (await line.act("authenticate", agent_id=old))["code"] == "NOT_ALLOWLISTED"
    assert (await line.say({"type": "announce", "agent_id": "somebody"}))["type"] == "agent_status"

"""The users of this machine whose programs a rule admits, and the questions about others."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import Served
from tests.users import NOBODY, SYSTEM_PYTHON
from workbench.ops import OPERATOR
from workbench.process import connected_user

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose a connection is"),
]
as_another = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")

CALL = """
import json, sys, urllib.request
url, body, *headers = sys.argv[1:]
request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json", **json.loads(headers[0])})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(opener.open(request).read().decode())
"""


async def call_as(user: int, served: Served, op: str, token: str | None = None, **arguments: Any) -> dict[str, Any]:
    """The answer to a user's program that calls an operation."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"{served.info.url}/api/ops/{op}"
    run = [SYSTEM_PYTHON, "-I", "-c", CALL, url, json.dumps(arguments), json.dumps(headers)]
    done = await asyncio.to_thread(subprocess.run, run, cwd="/", user=user, group=user, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)["data"]
    return answer


@as_another
async def test_a_rule_admits_only_programs_of_this_user(served: Served) -> None:
    grants = {"tool": "write", "role": "planner", "access_level": "session_level"}
    call = served.workbench.call
    await call("add_admission_rule", name="helpers", pattern="helper*", grants=grants)
    assert (await call_as(os.geteuid(), served, "register", name="helper-1"))["status"] == "assigned"
    theirs = await call_as(NOBODY, served, "register", name="helper-2")
    assert theirs["status"] == "pending"
    asked = {
        approval["payload"]["name"]: approval["payload"]
        for approval in (await call("list_decided_approvals"))["approvals"]
    }
    assert asked["helper-1"]["other_user"] is None
    (waiting,) = (await call("list_approvals"))["approvals"]
    assert waiting["payload"]["other_user"] == "nobody"


@as_another
async def test_a_rule_admits_no_agents_that_another_users_planner_spawns(served: Served) -> None:
    workbench = served.workbench
    await workbench.call("add_admission_rule", name="helpers", pattern="helper*")
    theirs = await call_as(NOBODY, served, "register", name="mole")
    await workbench.call("approve", approval_id=theirs["approval_id"], choices={"role": "planner"})
    spawned = await call_as(NOBODY, served, "spawn_agent", theirs["token"], persona_id="tester", name="helper-z")
    assert spawned["status"] == "pending"
    (waiting,) = (await workbench.call("list_approvals"))["approvals"]
    assert (waiting["payload"]["name"], waiting["payload"]["other_user"]) == ("helper-z", "nobody")


@pytest.mark.parametrize(
    ("host", "to"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("127.0.0.1", "::ffff:127.0.0.1")]
)
async def test_the_user_of_an_open_connection_is_shown(host: str, to: str) -> None:
    ends: asyncio.Queue[Any] = asyncio.Queue()

    async def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends.put_nowait((writer.get_extra_info("peername")[:2], writer.get_extra_info("sockname")[:2]))
        writer.close()

    async with await asyncio.start_server(note, host) as server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection(to, port)
        client, ours = await ends.get()
        assert connected_user(client, ours) == os.geteuid()
        assert connected_user(client, (ours[0], 1)) is None
        assert connected_user(("no address", 1), ours) is None
        writer.close()
        await writer.wait_closed()
        assert connected_user(client, ours) is None


async def test_a_caller_in_this_process_is_this_user(served: Served) -> None:
    await served.workbench.dispatch(OPERATOR, "register", {"name": "mine"})
    (approval,) = (await served.workbench.call("list_approvals"))["approvals"]
    assert approval["payload"]["other_user"] is None

"""Commands in a project that a server serves: the server is asked."""

from __future__ import annotations

import asyncio

import pytest

from tests import given
from tests.cli.conftest import data
from tests.conftest import Command, Ran, Served
from workbench.rules.secrets.forms import MASK


@pytest.mark.long
@pytest.mark.anyio
async def test_commands_ask_the_running_server(served: Served, command: Command, program: Command) -> None:
    ran = await command("spawn", "implementer", "--name", "ada", "--tools", "notebok")
    assert "UNKNOWN_TOOL" in ran.err
    assert "Did you mean notebook?" in ran.err
    ran = await command("--json", "spawn", "implementer", "--name", "ada", "--tools", "network, notebook")
    assert data(ran)["status"] == "assigned"
    [agent] = (await served.workbench.call("list_agents"))["agents"]
    assert (agent["agent_id"], agent["tools"]) == ("ada", ["network", "notebook"])
    limits = (
        "--tools",
        "none",
        "--wall",
        "60",
        "--memory",
        "2G",
        "--env",
        "A=b=c",
        "--env",
        "CITY=Oslo",
        "--secret",
        "CITY",
        "--secret",
        "B=blue",
    )
    ran = await command("--json", "spawn", "implementer", "--name", "bob", "--new-worktree", *limits)
    assert data(ran)["worktree"] == "bob"
    assert served.workbench._ctx.secrets.masked("Oslo blue b=c") == f"{MASK} {MASK} b=c"
    found = data(await command("--json", "logs", "bob", "--lines", "5"))
    assert found["limits"] == {"cpu_seconds": None, "memory_bytes": 2 * 10**9, "wall_seconds": 60, "tasks": None}
    ran = await command("ps")
    assert [line.split()[:2] for line in ran.out.splitlines()[1:3]] == [["ada", "running"], ["bob", "running"]]
    ran = await command("spawn", "planner", "--name", "cleo")
    assert " as a planner; it is assigned." in ran.out
    await command("terminate", "cleo")
    ran = await command("restart", "ada")
    assert ran.out.startswith("ada runs as process ")
    ran = await command("terminate", "ada", "--reason", "Enough")
    assert ran == Ran(0, "Ended ada.\n", "")
    states = {one["agent_id"]: one["state"] for one in data(await command("--json", "ps", "--all"))}
    assert states == {"ada": "ended", "bob": "running", "cleo": "ended"}

    async def admitted() -> bool:
        return "admitted as bob" in (await command("logs", "bob")).out

    await given.until(admitted)
    following = asyncio.create_task(program("logs", "bob", "--follow"))
    while not following.done():
        await command("terminate", "bob")
        await asyncio.wait({following}, timeout=1)
    assert following.result().out.count("admitted as bob") == 1
    assert "script" in (await command("profiles")).out


@pytest.mark.anyio
async def test_the_server_and_how_to_connect_are_printed(served: Served, command: Command) -> None:
    assert ["server", served.info.url] in [line.split() for line in (await command("status")).out.splitlines()]
    shown = (await command("connect")).out
    assert (served.info.mcp_url in shown, "# Claude Code" in shown) == (True, True)

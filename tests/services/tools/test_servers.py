"""The MCP servers of a project: configured, trusted, confined, connected to, and their tools called."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from tests import given
from tests.conftest import Served
from tests.upstream.servers import SERVER, http_server
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Unavailable
from workbench.ops import OPERATOR
from workbench.rules.tools.surroundings import Surroundings
from workbench.services.processes import samples
from workbench.services.tools import calls, catalogue
from workbench.services.tools.tool import ToolInvocation, ToolScope
from workbench.shells.serve import Servers
from workbench.state.settings import Settings
from workbench.store.queries import Query

pytestmark = [pytest.mark.anyio, pytest.mark.long]

ADD = {"a": 1, "b": 2}
SAMPLES = Query("samples", "SELECT DISTINCT kind, owner FROM process_samples WHERE memory_bytes > 0")
SECRET = "hunter2-of-the-person"


@pytest.fixture
def settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A project with the tests' server as a file; starting it may take long on a busy machine."""
    monkeypatch.setenv("THEIR_TOKEN", SECRET)
    shutil.copy(SERVER, settings.project / "server.py")
    return settings.model_copy(update={"tool_server_start_seconds": 60.0})


def program(settings: Settings, *arguments: str, **more: Any) -> dict[str, Any]:
    """The configuration of the tests' server as a program."""
    return {"command": sys.executable, "args": [str(settings.project / "server.py"), *arguments], **more}


def write(settings: Settings, **servers: Any) -> None:
    """Write the file as a person or git would."""
    settings.home.mkdir(exist_ok=True)
    settings.tool_servers_file.write_text(json.dumps({"mcpServers": servers}))


async def server(workbench: Workbench, name: str = "small") -> dict[str, Any]:
    """A server as it is listed."""
    listed = await workbench.call("list_tool_servers")
    return next(server for server in listed["servers"] if server["name"] == name)


async def until(workbench: Workbench, is_so: Callable[[dict[str, Any]], bool], name: str = "small") -> dict[str, Any]:
    """A server, once something is true of it."""

    async def look() -> dict[str, Any] | None:
        found = await server(workbench, name)
        return found if is_so(found) else None

    return dict(await given.until(look))


def programs() -> list[psutil.Process]:
    """The tests' servers that run."""
    return [child for child in psutil.Process().children(recursive=True) if "server.py" in " ".join(child.cmdline())]


async def question(workbench: Workbench) -> dict[str, Any] | None:
    """The pending question about trust."""
    pending = (await workbench.call("list_approvals"))["approvals"]
    return next((one for one in pending if one["kind"] == "trust"), None)


async def is_unasked(workbench: Workbench) -> bool:
    return await question(workbench) is None


async def test_a_server_added_by_the_operator_is_trusted_started_and_called(served: Served, settings: Settings) -> None:
    workbench, steps = served.workbench, []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total, message))

    async def elicit(message: str, schema: Any) -> dict[str, Any]:
        return {"action": "accept", "content": {"colour": f"red, for {message}"}}

    async def seen() -> set[tuple[str, bool]]:
        events = (await workbench.call("list_events", kinds=["tool_server.changed"]))["events"]
        return {(event["data"]["state"], event["data"]["tools"] > 8) for event in events} & {("ready", True)}

    added = await workbench.call("add_tool_server", name="small", config=program(settings))
    assert (added["state"], added["problem"], added["about"]) == ("ready", None, "small 1.5")
    assert "small__add" in added["tools"]
    await samples.sample(workbench._ctx)
    [sampled] = await workbench.store.read(lambda tx: tx.all(SAMPLES))
    assert (sampled["kind"], sampled["owner"]) == ("tool server", "small")
    assert "greetings from the tests' server" in added["log"]
    assert await question(workbench) is None
    done = await workbench.call("call_tool", name="small__add", arguments=ADD)
    assert (await workbench.call("get_tool_call", call_id=done["call_id"]))["version"] == "small 1.5"
    assert (done["result"], done["source"], done["server"]) == ({"result": 3}, "mcp", "small")
    tool = await workbench.call("get_tool", name="small__add")
    assert tool["parameters"]["required"] == ["a", "b"]
    ctx, around = workbench._ctx.of(OPERATOR), Surroundings(progress, elicit)
    counted = await calls.call(ctx, ToolScope(OPERATOR), "small__count", {"to": 3}, around)
    assert (counted.outcome.is_error, steps[-1]) == (False, (2, 3, "number 2"))
    painted = await calls.call(ctx, ToolScope(OPERATOR), "small__paint", {"what": "it"}, around)
    assert painted.outcome.structured == {"result": "red, for Which colour for it?"}
    await workbench.call("call_tool", name="small__grow")
    await until(workbench, lambda one: "small__more" in one["tools"])
    assert await given.until(seen)
    assert await workbench.call("remove_tool_server", name="small") == {"name": "small"}
    assert (await workbench.call("list_tool_servers"))["servers"] == []
    with pytest.raises(NotFound, match="UNKNOWN_TOOL"):
        await workbench.call("call_tool", name="small__add", arguments=ADD)


async def test_a_server_in_somebody_elses_file_starts_once_it_is_trusted(served: Served, settings: Settings) -> None:
    workbench = served.workbench
    write(settings, small=program(settings))
    withdrawn = (await until(workbench, lambda one: one["approval_id"] is not None))["approval_id"]
    write(settings)
    await given.until(lambda: is_unasked(workbench))
    write(settings, small=program(settings))
    found = await until(workbench, lambda one: one["approval_id"] not in (None, withdrawn))
    assert (found["state"], found["tools"]) == ("untrusted", [])
    approval = await question(workbench)
    assert approval is not None
    assert approval["payload"]["needs"][0]["name"] == "mcpServers.small"
    await workbench.call("approve", approval_id=approval["id"])
    assert "small__add" in (await until(workbench, lambda one: one["state"] == "ready"))["tools"]

    write(settings, small=program(settings, "tools=1"))
    found = await until(workbench, lambda one: one["approval_id"] not in (None, approval["id"]))
    assert found["state"] == "untrusted", "a changed command is asked for again, and the old one does not go on"
    await workbench.call("reject", approval_id=found["approval_id"], reason="I do not know it")
    found = await until(workbench, lambda one: one["state"] == "refused")
    assert found["problem"] == "the operator refused it: I do not know it"


async def test_a_program_gets_its_secrets_and_no_other_variables_and_shows_them_to_nobody(
    served: Served, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMEBODYS_API_KEY", "another secret")
    workbench = served.workbench
    config = program(settings, "describe=TOKEN", env={"TOKEN": "env://THEIR_TOKEN", "MODE": "quiet"})
    added = await workbench.call("add_tool_server", name="small", config=config)
    assert added["config"]["env"] == {"TOKEN": "env://THEIR_TOKEN", "MODE": "quiet"}

    async def variable(name: str) -> Any:
        return (await workbench.call("call_tool", name="small__environment", arguments={"name": name}))["result"]

    assert await variable("MODE") == {"result": "quiet"}
    assert await variable("TOKEN") == {"result": "••••••"}
    assert await variable("SOMEBODYS_API_KEY") == {"result": ""}
    assert SECRET not in settings.tool_servers_file.read_text()
    assert SECRET not in str(await workbench.call("list_tool_servers"))
    assert (await workbench.call("get_tool", name="small__described"))["description"] == "••••••"


async def test_a_server_that_does_not_start_says_why(served: Served, settings: Settings) -> None:
    config = program(settings, env={"TOKEN": "env://NOT_SET"})
    added = await served.workbench.call("add_tool_server", name="secret", config=config)
    assert added["state"] == "failed"
    assert "mcpServers.secret.env.TOKEN" in added["problem"]
    config = {"command": sys.executable, "args": [str(settings.project / "missing.py")]}
    added = await served.workbench.call("add_tool_server", name="small", config=config)
    assert added["state"] == "failed"
    assert added["problem"].startswith("the connection was closed; the program wrote: ")
    assert "missing.py" in added["problem"]


async def test_a_server_at_a_url_is_called_with_its_headers(served: Served) -> None:
    with http_server() as address:
        config = {"url": address.url, "headers": {"Authorization": "Bearer env://THEIR_TOKEN"}}
        added = await served.workbench.call("add_tool_server", name="web", config=config)
        assert (added["state"], added["confined"]) == ("ready", None)
        done = await served.workbench.call("call_tool", name="web__add", arguments=ADD)
        assert done["result"] == {"result": 3}


async def test_a_server_is_switched_off_and_on_and_comes_back_if_it_dies(served: Served, settings: Settings) -> None:
    workbench, switch = served.workbench, settings.project / "on"
    switch.touch()
    await workbench.call("add_tool_server", name="small", config=program(settings))
    off = await workbench.call("update_tool_server", name="small", enabled=False)
    assert (off["state"], off["tools"]) == ("disabled", [])
    assert programs() == []
    assert (await workbench.call("update_tool_server", name="small", enabled=True))["state"] == "ready"
    config = program(settings, "tools=2", f"switch={switch}")
    changed = await workbench.call("update_tool_server", name="small", config=config)
    assert {"small__tool_0", "small__tool_1"} < set(changed["tools"])
    switch.unlink()
    with pytest.raises(Unavailable, match="TOOL_SERVER_DOWN"):
        await workbench.call("call_tool", name="small__exit_now")
    tools = (await workbench.call("list_tools", server="small"))["tools"]
    assert tools[0]["problem"].startswith("the MCP server small is ")
    assert (await workbench.call("list_tools", source="local"))["tools"], "others are unharmed"
    switch.touch()
    await until(workbench, lambda one: one["restarts"] > 0 and one["state"] == "ready")
    assert (await workbench.call("call_tool", name="small__add", arguments=ADD))["result"] == {"result": 3}
    restarted = await workbench.call("restart_tool_server", name="small")
    assert (restarted["state"], restarted["restarts"]) == ("ready", 0)


async def test_an_invalid_server_is_refused_and_each_change_is_an_event(
    workbench: Workbench, settings: Settings
) -> None:
    for name in ("a__b", "notebook", "-x", "a b"):
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await workbench.call("add_tool_server", name=name, config=program(settings))
    for config in (
        {},
        {"command": ""},
        {"url": "ftp://x"},
        {"url": "https://me:pw@x"},
        {"command": "x", "env": {"LD_X": "1"}},
    ):
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await workbench.call("add_tool_server", name="small", config=config)
    changes = [
        ("add_tool_server", {"config": program(settings)}),
        ("update_tool_server", {"enabled": False}),
        ("update_tool_server", {"config": program(settings, "tools=1")}),
        ("remove_tool_server", {}),
        ("add_tool_server", {"config": program(settings)}),
    ]
    for number, (change, more) in enumerate(changes, 1):  # of a server that does not run
        await workbench.call(change, name="small", **more)
        assert await given.kinds(workbench, subject="tool_server:small") == ["tool_server.changed"] * number
    with pytest.raises(Conflict, match="TOOL_SERVER_EXISTS"):
        await workbench.call("add_tool_server", name="small", config=program(settings))
    with pytest.raises(NotFound, match=r"TOOL_SERVER_NOT_FOUND.*Did you mean small?"):
        await workbench.call("remove_tool_server", name="smal")
    with pytest.raises(Unavailable, match="NO_SERVER"):
        await workbench.call("restart_tool_server", name="small")
    assert (await server(workbench))["state"] == "stopped"


async def test_a_file_of_other_programs_is_used_and_its_mistakes_shown(
    workbench: Workbench, settings: Settings
) -> None:
    write(settings, small=program(settings) | {"autoApprove": ["x"], "disabled": True}, bad={"url": 3}, worse=[])
    servers = {server["name"]: server for server in (await workbench.call("list_tool_servers"))["servers"]}
    states = {name: one["state"] for name, one in servers.items()}
    assert states == {"bad": "invalid", "small": "disabled", "worse": "invalid"}
    await workbench.call("update_tool_server", name="small", enabled=True)
    kept = json.loads(settings.tool_servers_file.read_text())["mcpServers"]
    assert kept["small"]["autoApprove"] == ["x"]
    assert kept["worse"] == []
    settings.tool_servers_file.write_text("{")
    assert (await workbench.call("list_tool_servers"))["problem"].startswith("line 1, ")
    with pytest.raises(BadInput, match="BAD_TOOL_SERVERS"):
        await workbench.call("add_tool_server", name="other", config=program(settings))


async def test_servers_of_a_definition_start_when_needed_and_stop_when_idle(served: Served, settings: Settings) -> None:
    workbench = served.workbench
    await workbench.call("agent_create", agentPath="./agents/mine", name="mine")
    await workbench.call("agent_add_mcp_server", agentTarget="mine", serverName="small", config=program(settings))
    ctx = workbench._ctx.of(OPERATOR)
    scope = ToolScope(OPERATOR, ctx.definitions.get("mine"))
    assert "small__add" in {tool.name for tool in await catalogue.offered(ctx, scope)}
    tool = await catalogue.find(ctx, scope, "small__add")
    done = await tool.run(ctx, ToolInvocation("a call", scope, ADD, Surroundings()))
    assert done.structured == {"result": 3}
    ctx.local.upstreams.stop_idle(0)
    await ctx.local.upstreams.stopped()
    assert programs() == []
    assert "small__add" in {tool.name for tool in await catalogue.offered(ctx, scope)}


async def test_no_definition_has_a_server_that_is_named_as_one_of_the_project(
    workbench: Workbench, settings: Settings
) -> None:
    call, config = workbench.call, {"command": "true"}
    for name in ("mine", "free"):
        await call("agent_create", agentPath=f"./agents/{name}", name=name)
    await call("agent_add_mcp_server", agentTarget="mine", serverName="Small", config=config)
    await call("agent_add_mcp_server", agentTarget="free", serverName="small", config=config)
    await given.refuses("TOOL_NAME_TAKEN", call("add_tool_server", name="small", config=config))
    for name in ("mine", "free"):
        await call("agent_delete_mcp_server", agentTarget=name, serverName="Small" if name == "mine" else "small")
    await call("add_tool_server", name="small", config=config)
    own = {"agentTarget": "mine", "serverName": "SMALL", "config": config}
    await given.refuses("TOOL_NAME_TAKEN", call("agent_add_mcp_server", **own))
    bulk = [{"tool": "agent_add_mcp_server", "arguments": own}]
    await given.refuses("TOOL_NAME_TAKEN", call("agent_bulk", changes=bulk))
    text = "metadata: {id: other, name: other}\nmcpServers: {small: {command: other}}\n"
    await given.refuses(
        "TOOL_NAME_TAKEN", call("agent_import", agentPath="./agents/other", content=f"workbenchAgent: 1\n{text}")
    )
    (settings.home / "agents" / "free" / "agent.yaml").write_text(text)  # as an earlier version left it
    await call("agent_add_rule", agentTarget="other", rule={"name": "a", "text": "b"})
    clone = {"sourceAgent": "other", "targetPath": "./agents/clone", "newName": "clone"}
    await given.refuses("TOOL_NAME_TAKEN", call("agent_clone", **clone))
    problems = (await call("agent_validate", agentTarget="other"))["problems"]
    assert "mcpServers.small" in [problem["place"] for problem in problems]


async def test_a_server_name_shared_by_project_and_definition_disables_both(served: Served, settings: Settings) -> None:
    workbench, ctx = served.workbench, served.workbench._ctx.of(OPERATOR)
    await workbench.call("agent_create", agentPath="./agents/mine", name="mine")
    await workbench.call("agent_add_mcp_server", agentTarget="mine", serverName="small", config=program(settings))
    write(settings, Small={"command": "true", "disabled": True})  # which no operation writes any more
    scope = ToolScope(OPERATOR, ctx.definitions.get("mine"))
    tool = await catalogue.find(ctx, scope, "small__add")
    assert {one.can_be_called for one in await catalogue.offered(ctx, scope) if one.server == "small"} == {False}
    assert "the project and the definition both have an MCP server named small" in (tool.problem or "")
    await given.refuses("TOOL_UNAVAILABLE", calls.call(ctx, scope, "small__add", ADD, Surroundings()))
    write(settings)
    assert (await catalogue.find(ctx, scope, "small__add")).can_be_called


async def test_an_end_of_the_servers_ends_every_program(settings: Settings) -> None:
    async with Workbench.open(settings) as workbench, Servers(workbench) as servers:
        await servers.start(0)
        await workbench.call("add_tool_server", name="small", config=program(settings))
    assert programs() == []

"""An MCP server of a definition is tried once: trusted, confined, within a time limit, and its secrets stay hidden."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import given
from tests.conftest import Admit, Served, ended
from tests.services.definitions.conftest import refused
from tests.upstream.servers import OFF_PROTOCOL
from workbench.app import Workbench
from workbench.confinement import abilities
from workbench.definition_files.registry import PROBES
from workbench.errors import Refused, Unavailable
from workbench.ops import OPERATOR
from workbench.services.definitions import changes
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long]
SERVER = Path(__file__).with_name("mcp_server.py")
SECRET = "hunter2-of-the-person"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_TOKEN", SECRET)


async def probe_server(workbench: Workbench, seconds: float = 30, **server: Any) -> dict[str, Any]:
    """Try a server that the operator adds to a definition."""
    ctx = workbench._ctx.of(OPERATOR)
    await workbench.call("agent_create", agentPath="./agents/mine", name="mine")
    await changes.change(ctx, "mine", lambda old: changes.updated(old, mcp_servers={"it": server}), "added")
    return await workbench.call("agent_probe_mcp_server", agentTarget="mine", serverName="it", timeoutSeconds=seconds)


def program(settings: Settings, *arguments: object, text: str | None = None, **more: Any) -> dict[str, Any]:
    """The configuration of the test's server, or of another program, as a file of the project."""
    script = settings.project / "server.py"
    script.write_text(SERVER.read_text() if text is None else text)
    return {"command": sys.executable, "args": [str(script), *map(str, arguments)], **more}


async def test_the_tools_of_a_program_are_listed_with_secrets_masked(workbench: Workbench, settings: Settings) -> None:
    probe = await probe_server(workbench, **program(settings, env={"API_TOKEN": "env://THEIR_TOKEN"}))
    assert (probe["error"], probe["ok"], probe["server"], probe["version"]) == (None, True, "greeter", "2.1")
    assert [tool["name"] for tool in probe["tools"]] == ["greet"]
    assert probe["tools"][0]["description"] == "reads []; knows ••••••"
    assert probe["confined"] is (abilities().abi > 0)


async def test_a_tool_that_is_off_the_protocol_is_named_and_the_others_are_listed(
    workbench: Workbench, settings: Settings
) -> None:
    probe = await probe_server(workbench, **program(settings, text=OFF_PROTOCOL.read_text()))
    assert ([tool["name"] for tool in probe["tools"]], probe["error"]) == (["good", "empty", "bad"], None)
    assert probe["problems"] == ["worse: inputSchema: required"]


@pytest.mark.skipif(abilities().abi == 0, reason="this system does not confine")
async def test_a_program_reads_the_project_but_no_state(
    workbench: Workbench, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("")
    names = [settings.project / "README.md", settings.database, settings.project / ".git/config", tmp_path / "outside"]
    probe = await probe_server(workbench, **program(settings, *names))
    assert probe["tools"][0]["description"] == f"reads {[str(names[0])]}; knows nothing"


async def test_the_error_of_a_failed_program_is_masked(
    workbench: Workbench, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    text = "import os, sys; print(os.environ['T']); sys.exit('no ' + os.environ['T'])"
    probe = await probe_server(workbench, **program(settings, text=text, env={"T": "env://THEIR_TOKEN"}))
    assert (probe["ok"], probe["tools"]) == (False, [])
    assert probe["error"] == "The server could not be tried: MCPError: Connection closed. Its program wrote: no ••••••"
    assert SECRET not in caplog.text


async def test_a_program_gets_few_variables_and_those_that_its_configuration_names(
    workbench: Workbench, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JWT", "AUTH_HEADER", "SLACK_WEBHOOK", "MONKEY", "CUDA_VISIBLE_DEVICES", "TERM"):
        monkeypatch.setenv(name, "theirs")
    text = "import os, sys; sys.exit(','.join(k for k, v in os.environ.items() if v == 'theirs'))"
    probe = await probe_server(workbench, **program(settings, text=text, env={"NAMED": "theirs"}))
    assert probe["error"].endswith("wrote: NAMED")


async def test_a_program_or_a_server_that_is_not_there_is_named(workbench: Workbench) -> None:
    probe = await probe_server(workbench, command="no-such-program-anywhere")
    assert "no-such-program-anywhere" in probe["error"]
    await refused("NOT_FOUND", workbench, "agent_probe_mcp_server", agentTarget="mine", serverName="other")


async def test_a_program_with_an_unreadable_secret_is_not_started(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THEIR_TOKEN")
    with pytest.raises(Unavailable, match="SECRET_UNRESOLVED") as caught:
        await probe_server(workbench, command="sh", env={"API_TOKEN": "env://THEIR_TOKEN"})
    assert caught.value.details == {"reference": "env://THEIR_TOKEN", "place": "mcpServers.it.env.API_TOKEN"}


SILENT = """\
import os, subprocess, sys
deep = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(os.getpid(), deep.pid, file=sys.stderr, flush=True)
while sys.stdin.read(1):
    pass
deep.wait()
"""


async def test_a_silent_program_is_ended_with_all_that_it_started(workbench: Workbench, settings: Settings) -> None:
    probe = await probe_server(workbench, 2, **program(settings, text=SILENT))
    assert probe["error"].startswith("The server could not be tried: it did not answer within 2 s.")
    await ended(*map(int, probe["error"].partition("wrote: ")[2].split()))


async def test_cancelling_the_probe_ends_the_program(workbench: Workbench, settings: Settings) -> None:
    server = program(settings, text=SILENT)
    probing = asyncio.create_task(probe_server(workbench, 60, **server))
    found = await given.until(lambda: _running(server["args"][0]))
    probing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probing
    await ended(*found)


def _running(script: str) -> list[int]:
    """The processes that run a script, without launchers."""
    return [process.pid for process in psutil.process_iter() if _command(process)[-1:] == [script]]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


async def test_an_untrusted_server_is_not_started(workbench: Workbench, settings: Settings, admit: Admit) -> None:
    admitted = await admit("ada", role="planner", definitions=True)
    mark = settings.project / "started"
    await workbench.dispatch(admitted.caller, "agent_create", {"agentPath": "./agents/hers", "name": "hers"})
    server = {"it": {"command": "touch", "args": [str(mark)]}}
    ctx = workbench._ctx.of(admitted.caller)
    await changes.change(ctx, "hers", lambda old: changes.updated(old, mcp_servers=server), "added")
    for caller in (admitted.caller, OPERATOR):
        with pytest.raises(Refused, match="DEFINITION_NOT_TRUSTED"):
            await workbench.dispatch(caller, "agent_probe_mcp_server", {"agentTarget": "hers", "serverName": "it"})
    assert not mark.exists()


async def test_the_tools_of_a_server_at_a_url_are_listed_with_the_header_that_it_needs(
    served: Served, admit: Admit, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await admit("bob")).token
    monkeypatch.setenv("BOBS_HEADER", f"Bearer {token}")
    headers = {"Authorization": "env://BOBS_HEADER"}
    probe = await probe_server(served.workbench, url=served.info.mcp_url, headers=headers)
    assert (probe["ok"], probe["confined"]) == (True, None)
    assert "claim_task" in [tool["name"] for tool in probe["tools"]]
    assert token not in str(probe)


async def test_the_error_of_a_silent_url_is_masked(workbench: Workbench) -> None:
    probe = await probe_server(workbench, url="http://127.0.0.1:9/mcp")
    assert not probe["ok"]
    assert os.environ["THEIR_TOKEN"] not in str(probe)


async def test_only_a_few_servers_are_probed_at_once(workbench: Workbench) -> None:
    probing = workbench._ctx.definitions.probing
    for _ in range(PROBES):
        await probing.acquire()
    trying = asyncio.create_task(probe_server(workbench, command="no-such-program-anywhere"))
    while not probing.locked() or not (waiting := getattr(probing, "_waiters", None)):
        await asyncio.sleep(0.01)
    assert len(waiting) == 1
    probing.release()
    assert not (await trying)["ok"]

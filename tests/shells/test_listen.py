"""The address and port of the servers: IPv6, ports that are taken or not permitted, hosts that do not exist."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.conftest import Served
from tests.shells.mcp.test_server import plain_http
from workbench.app import Workbench
from workbench.client import Agent, HttpClient, McpClient
from workbench.errors import WorkbenchError
from workbench.shells.serve import Servers
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


on_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


def unprivileged_from() -> int:
    """The first port that every user may bind."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    except OSError:
        return 1024


@pytest.fixture
async def served_on_ipv6(settings: Settings) -> AsyncIterator[Served]:
    """The servers on the loopback address of IPv6."""
    there = settings.model_copy(update={"host": "::1"})
    async with Workbench.open(there) as workbench, Servers(workbench) as servers:
        yield Served(workbench, await servers.start(0), servers)


def elsewhere(settings: Settings, host: str) -> Settings:
    """The settings of a project that is served to others."""
    return Settings(project=settings.project, host=host, allow_remote=True, access_token=SecretStr("secret"))


async def code_of(settings: Settings, port: int | None, **changes: object) -> tuple[str, str]:
    async with Workbench.open(settings.model_copy(update=changes)) as workbench, Servers(workbench) as servers:
        with pytest.raises(WorkbenchError) as caught:
            await servers.start(port)
        assert workbench.server is None
        return caught.value.code, caught.value.message


@on_ipv6
async def test_every_client_reaches_a_server_on_the_ipv6_loopback(served_on_ipv6: Served) -> None:
    info = served_on_ipv6.info
    port = ServerFile(served_on_ipv6.workbench.settings.server_file).load().port
    assert (info.url, info.ws_url) == (f"http://[::1]:{port}", f"ws://[::1]:{port}/ws")
    registration = await served_on_ipv6.workbench.call("register", name="ada")
    await served_on_ipv6.workbench.call("approve", approval_id=registration["approval_id"], choices={"agent_id": "ada"})
    async with (
        HttpClient(info.url, registration["token"]) as http,
        McpClient(info.mcp_url, registration["token"]) as mcp,
    ):
        assert await http.nonce() == info.nonce
        assert (await http.call("whoami"))["agent_id"] == "ada"
        assert (await mcp.call("whoami"))["agent_id"] == "ada"
    async with Agent(info.url, token=registration["token"]) as agent:
        assert (await agent.call("whoami"))["agent_id"] == "ada"
    async with Agent(f"{info.ws_url}", token=registration["token"]) as agent:
        assert agent.agent_id == "ada"


@on_ipv6
async def test_on_ipv6_too_only_its_own_names_are_answered_and_a_restart_takes_the_same_port(
    served_on_ipv6: Served,
) -> None:
    async with plain_http(served_on_ipv6) as http:
        assert (await http.get("/health")).status_code == 200
        for host in ("evil.example", "[fe80::1]"):
            assert (await http.get("/health", headers={"Host": host})).json()["error"]["code"] == "BAD_HOST"
    await served_on_ipv6.servers.stop()
    assert (await served_on_ipv6.servers.start()).url == served_on_ipv6.info.url


@on_ipv6
async def test_a_port_that_is_taken_on_ipv6_is_taken(settings: Settings) -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        code, _ = await code_of(settings, other.getsockname()[1], host="::1")
    assert code == "PORT_TAKEN"


@pytest.mark.parametrize("port", [0, None])
async def test_an_address_that_this_machine_lacks_is_no_taken_port(settings: Settings, port: int | None) -> None:
    code, message = await code_of(elsewhere(settings, "192.0.2.1"), port)
    assert code == "HOST_NOT_AVAILABLE"
    assert message.startswith("This machine has no address 192.0.2.1. Set host (WORKBENCH_HOST) to 127.0.0.1, ::1 or ")


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "x" * 300, "127.0.0.1:80"])
async def test_a_host_that_is_unknown_is_no_taken_port(settings: Settings, host: str) -> None:
    code, message = await code_of(elsewhere(settings, host), 0)
    assert code == "HOST_NOT_AVAILABLE"
    assert message.startswith(f"The host {host!r} is unknown. Set host")


@pytest.mark.skipif(unprivileged_from() <= 80, reason="here every user may bind port 80")
def test_a_port_that_needs_more_rights_is_no_taken_port(tmp_path: Path) -> None:
    """In a process of its own, as an ordinary user."""
    code = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from workbench.errors import WorkbenchError\n"
        "from workbench.state.settings import Settings\n"
        "from workbench.shells.listen import listen\n"
        "settings = Settings(project=Path(sys.argv[1]), port=80)\n"
        "asyncio.run(listen(settings, 0, None)).close()  # imports what an ordinary user may not read\n"
        "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: asyncio.run(listen(settings, 80, None))\n"
        "except WorkbenchError as error: print(error)\n"
        "print(asyncio.run(listen(settings, None, None)).getsockname()[1] > 80)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout == (
        "PORT_NOT_PERMITTED: This user may not bind port 80; ports below 1024 usually need more privileges. "
        "Choose another, or 0 for any free port.\nTrue\n"
    )

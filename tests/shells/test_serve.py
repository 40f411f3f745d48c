"""The servers' life: one port, one process for a project, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
import uvicorn
import yaml
from websockets.exceptions import ConnectionClosedError

import workbench.shells
from tests.conftest import Admit, Command, Served, Talks
from tests.shells.mcp.test_server import headers, open_session, plain_http, session
from workbench.app import Workbench
from workbench.client import HttpClient
from workbench.errors import WorkbenchError
from workbench.model import ServerInfo
from workbench.shells.serve import Servers
from workbench.state.root import identity
from workbench.state.server_file import ServerFile, ServerFileContent
from workbench.state.settings import Settings
from workbench.trust.withheld import trust, withheld

pytestmark = pytest.mark.anyio


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program has."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


async def answers(url: str) -> bool:
    async with HttpClient(url) as client:
        return await client.nonce() is not None


async def code_of(start: Any) -> tuple[str, int]:
    with pytest.raises(WorkbenchError) as caught:
        await start
    return caught.value.code, caught.value.status


# Ports


async def test_a_port_that_was_asked_for_and_is_taken_is_an_error(workbench: Workbench, taken: int) -> None:
    async with Servers(workbench) as servers:
        assert await code_of(servers.start(taken)) == ("PORT_TAKEN", 503)
        assert workbench.server is None
        assert ServerFile(workbench.settings.server_file).load().info is None
        info = await servers.start(0)
        assert await answers(info.url)


async def test_a_taken_preferred_port_is_skipped_even_if_it_is_the_last(settings: Settings, taken: int) -> None:
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # then somebody else has it
            stack.enter_context(socket.create_server(("127.0.0.1", 65_535)))
        for port in (taken, 65_535):
            preferring = settings.model_copy(update={"port": port})
            async with Workbench.open(preferring) as opened, Servers(opened) as servers:
                info = await servers.start()
                assert port_of(info.url) != port
                assert await answers(info.url)
            settings.server_file.unlink()  # which names the port that is tried first


async def test_a_restart_answers_where_the_last_one_did_but_to_a_new_token_only(settings: Settings) -> None:
    urls, tokens = set(), []
    for _ in range(2):
        async with Workbench.open(settings) as opened:
            for _ in range(2):
                async with Servers(opened) as servers:
                    info = await servers.start()
                    urls.add(info.url)
                    tokens.append(opened.operator_token)
                    async with HttpClient(info.url, tokens[-1]) as client:
                        assert (await client.call("whoami"))["level"] == "operator"
                        assert await client.nonce() == info.nonce
                    for former in tokens[:-1]:
                        async with HttpClient(info.url, former) as client:
                            with pytest.raises(WorkbenchError, match="INVALID_TOKEN"):
                                await client.call("whoami")
    assert len(urls) == 1
    assert len(set(tokens)) == 4


# server.json


async def test_the_file_names_the_server_and_only_its_owner_may_read_it(served: Served) -> None:
    file = served.workbench.settings.server_file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {
        "pid": os.getpid(),
        "started": served.info.started,
        "nonce": served.info.nonce,
        "url": served.info.url,
        "ws_url": served.info.url.replace("http", "ws") + "/ws",
        "mcp_url": served.info.url + "/mcp",
        "port": port_of(served.info.url),
        "operator_token": served.workbench.operator_token,
        "directory": identity(file.parent),
    }
    server_info = ServerFile(file).load()
    assert (server_info.info, server_info.operator_token) == (served.info, served.workbench.operator_token)
    await served.servers.stop()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {"port": server_info.port, "directory": identity(file.parent)}


DAMAGED = [
    *("", "{", "[]", "null", "\0" * 100, '{"port": -1, "operator_token": null}', '{"port": 99999}'),
    *('{"port": true, "pid": "me"}', '{"pid": 1, "unknown": {}}', '{"port": "x", "operator_token": 5}'),
]


def here(pid: int) -> ServerInfo:
    """A server that a process of this machine could be."""
    started, url = psutil.Process(pid).create_time(), "http://127.0.0.1:1"
    return ServerInfo(pid=pid, started=started, nonce="n", url=url, ws_url=url, mcp_url=url)


async def test_a_server_file_that_is_not_private_is_ignored_and_rewritten(workbench: Workbench) -> None:
    file, other = workbench.settings.server_file, workbench.settings.project / "planted.json"
    planted = here(os.getpid()).model_dump()
    for access, linked in ((0o644, False), (0o620, False), (0o600, True)):
        (where := other if linked else file).write_text(json.dumps({**planted, "port": 4, "operator_token": "wbo_x"}))
        where.chmod(access)
        if linked:
            file.unlink()
            file.symlink_to(other)
        assert ServerFile(file).load() == ServerFileContent(), (access, linked)
    async with Servers(workbench) as servers:
        info = await servers.start()
        assert not file.is_symlink()
        assert ServerFile(file).load() == ServerFileContent(info, workbench.operator_token, port_of(info.url))
    assert json.loads(other.read_text())["operator_token"] == "wbo_x"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
async def test_a_server_file_or_process_of_another_user_is_ignored(workbench: Workbench) -> None:
    file = ServerFile(workbench.settings.server_file)
    with subprocess.Popen(["sleep", "600"], user=65_534) as process:
        file.save(here(process.pid), "wbo_x")
        assert file.load().info is None
        process.kill()
    assert file.load().port == 1
    os.chown(file.path, 65_534, 65_534)
    assert file.load() == ServerFileContent()


async def test_a_damaged_server_file_is_ignored(workbench: Workbench) -> None:
    file = workbench.settings.server_file
    for text in DAMAGED:
        file.write_text(text.replace("{", f'{{"directory": "{identity(file.parent)}", ', 1))
        file.chmod(0o600)
        server_info = ServerFile(file).load()
        assert (server_info.info, server_info.operator_token) == (None, None), text
    async with Servers(workbench) as servers:
        assert await answers((await servers.start()).url)


async def test_the_file_of_an_ended_server_is_ignored(served: Served) -> None:
    file = ServerFile(served.workbench.settings.server_file)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for changed in ({"pid": gone.pid}, {"started": served.info.started - 3600}, {"pid": 1}):
        file.save(served.info.model_copy(update=changed), "wbo_")
        assert file.load().info is None, changed


async def test_a_project_is_served_once(served: Served, settings: Settings) -> None:
    async with Workbench.open(settings) as second, Servers(second) as others:
        for servers in (others, Servers(served.workbench)):
            with pytest.raises(WorkbenchError) as caught:
                await servers.start(0)
            assert (caught.value.code, caught.value.status) == ("ALREADY_SERVED", 409)
            assert str(os.getpid()) in caught.value.message
            assert served.info.url in caught.value.message
        assert await answers(served.info.url)
        await served.servers.stop()
        info = await others.start(0)
        assert await answers(info.url)


# Sockets


async def test_small_replies_do_not_wait_for_the_peer(served: Served, talk: Talks) -> None:
    """Without TCP_NODELAY each reply waits 40 ms for a delayed acknowledgement."""
    await talk("me")
    async with plain_http(served) as http:
        await http.get("/health")
        port = port_of(served.info.url)
        connections = psutil.Process().net_connections("tcp")
        accepted = [c for c in connections if c.laddr.port == port and c.status == psutil.CONN_ESTABLISHED]
        assert len(accepted) == 2
        for connection in accepted:
            with socket.socket(fileno=os.dup(connection.fd)) as ours:
                assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# Stopping


def at_work() -> list[str]:
    """Tasks of the servers: those whose code is a shell's or uvicorn's."""
    homes = [str(Path(module.__file__).parent) for module in (workbench.shells, uvicorn) if module.__file__]
    coroutines: list[Any] = [task.get_coro() for task in asyncio.all_tasks()]
    return [
        coroutine.__qualname__
        for coroutine in coroutines
        if any(coroutine.cr_code.co_filename.startswith(home) for home in homes)
    ]


WAITING = 9
"""What follows the feed below: two subscriptions, an SSE stream, four long polls, the notifications of the MCP session,
and a registration."""


async def test_stopping_amid_open_streams_leaves_nothing_and_cuts_off_polls_alone(
    served: Served, talk: Talks, admit: Admit, caplog: pytest.LogCaptureFixture
) -> None:
    threads = set(threading.enumerate())
    ada = await admit("ada")
    last = (await served.workbench.call("list_events", limit=1_000))["next_after"]
    waiting = {"after": last, "kinds": ["task.*"], "wait_seconds": 30}
    line = await talk("me", ada.token)
    for subscriber in (line, await talk("you", ada.token)):
        await subscriber.say("ada", "subscribe", after=last)
    for _ in range(3):
        await line.send("ada", "list_events", **waiting)
    await (await talk("waiting")).say("waiting", "register", name="Eve")
    async with httpx2.AsyncClient(base_url=served.info.url, trust_env=False, verify=False, timeout=30) as http:
        mine = await open_session(http, ada.token)
        events = {**headers(ada.token), "Accept": "text/event-stream", "Last-Event-ID": "0"}
        async with http.stream("GET", "/mcp", headers=mine), http.stream("GET", "/api/events", headers=events) as sse:
            lines = sse.aiter_lines()
            assert (await anext(lines)).startswith("id: ")
            poll = asyncio.create_task(http.post("/api/ops/list_events", json=waiting, headers=headers(ada.token)))
            async with asyncio.timeout(20):
                while served.workbench.feed.readers < WAITING:
                    await asyncio.sleep(0.01)
            assert at_work() != []
            await served.servers.stop()
            stopped = await poll
            assert (stopped.status_code, stopped.json()["error"]["code"]) == (503, "NO_SERVER")
            assert not [line async for line in lines if "error" in line]
    with pytest.raises(ConnectionClosedError):
        while True:
            await line.hear()
    assert at_work() == []
    assert served.workbench.feed.readers == 0
    assert (await served.workbench.call("get_agent", agent_id="ada"))["connections"] == 0
    await served.servers.stop()  # again
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == []
    started = {thread.name for thread in set(threading.enumerate()) - threads}
    assert {name for name in started if not name.startswith(("workbench-read", "asyncio"))} == set()
    assert free(port_of(served.info.url))
    assert served.workbench.server is None
    assert not await answers(served.info.url)
    assert (await served.workbench.call("ping"))["ok"]


async def test_no_log_holds_a_token(
    served: Served, talk: Talks, admit: Admit, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ada = await admit("ada")
    line = await talk("me", ada.token)
    await line.say("me", "authenticate", token="wba_" + "w" * 43)
    await talk("you", subprotocols=["wb.v1", f"bearer.{ada.token}"])
    async with HttpClient(served.info.url, ada.token) as http, session(served, ada.token) as mcp:
        await http.call("registration_status", token=ada.token)
        await mcp.call_tool("registration_status", {"token": ada.token})
        with pytest.raises(WorkbenchError):
            await http.call("get_task", task_id=ada.token)
    await served.servers.stop()
    assert caplog.text != ""
    for secret in (ada.token, served.workbench.operator_token, "w" * 43):
        assert secret not in caplog.text


# In a process of its own


Serve = Callable[..., Any]


@pytest.fixture
async def serve(settings: Settings) -> AsyncIterator[Serve]:
    """`process, url = await serve("--port", "0")`: `workbench serve` as soon as it says where; killed at the end."""
    processes: list[asyncio.subprocess.Process] = []

    async def started(*arguments: str) -> tuple[asyncio.subprocess.Process, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "workbench.cli", "serve", *arguments),
            env=os.environ | {"WORKBENCH_PROJECT": str(settings.project)},
            stdout=PIPE,
            stderr=PIPE,
        )
        processes.append(process)
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        assert line.startswith(f"Workbench serves {settings.project} at http://127.0.0.1:"), line
        return process, line.split(" at ")[1].split(" ")[0]

    yield started
    for process in processes:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_a_separate_server_answers_and_ends_with_its_children(
    settings: Settings, serve: Serve, program: Command
) -> None:
    process, url = await serve("--port", "0", "--end-workers")
    server_info = ServerFile(settings.server_file).load()
    assert server_info.info is not None
    assert server_info.operator_token is not None
    assert (server_info.info.pid, server_info.info.url) == (process.pid, url)
    async with HttpClient(url, server_info.operator_token) as client:
        assert await client.nonce() == server_info.info.nonce
        worker = psutil.Process((await client.call("spawn_agent", persona_id="implementer"))["pid"])
    second = await program("serve")
    assert (second.status, second.err.partition(":")[0]) == (1, "ALREADY_SERVED")
    process.send_signal(signal.SIGTERM)
    out, err = await process.communicate()
    assert process.returncode == 0
    assert not worker.is_running()
    assert free(port_of(url))
    assert ServerFile(settings.server_file).load().info is None
    assert server_info.operator_token not in (out + err).decode()
    assert "Traceback" not in err.decode()


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_a_server_at_another_port_takes_back_the_workers_of_one_that_was_killed_and_their_commands_reach_it(
    settings: Settings, serve: Serve
) -> None:
    (settings.home / "profiles").mkdir(parents=True)
    profile = {"summary": "Runs what its tasks say, and reaches the server.", "connect": ["server"]}
    (settings.home / "profiles" / "asks.yaml").write_text(yaml.safe_dump(profile), "utf-8")
    trust(settings.project, withheld(settings.project))
    process, url = await serve("--port", "0")
    server_info = ServerFile(settings.server_file).load()
    async with HttpClient(url, server_info.operator_token) as client:
        lab = Path((await client.call("create_worktree", name="lab"))["path"])
        walt = await client.call("spawn_agent", persona_id="implementer", assigned_worktree="lab", profile="asks")
        run = "touch begun; until [ -e go ]; do sleep 0.02; done; echo made > made.txt"
        await client.call("create_task", title="t", persona_id="implementer", run=run, lease_seconds=2)
        while not (lab / "begun").exists():
            await asyncio.sleep(0.02)
    process.kill()
    await process.communicate()
    with socket.create_server(("127.0.0.1", port_of(url))):  # which answers nothing
        _, elsewhere = await serve()
        assert elsewhere != url
        async with HttpClient(elsewhere, ServerFile(settings.server_file).load().operator_token) as client:
            (agent,) = (await client.call("get_managed_agents"))["agents"]
            assert (agent["process"]["running"], agent["process"]["pid"]) == (True, walt["pid"])
            (lab / "go").touch()
            while (await client.call("wait_for_task", task_id=1))["status"] not in ("completed", "failed"):
                pass
            task = await client.call("get_task", task_id=1)
            assert (task["status"], len(task["attempts"])) == ("completed", 1)
            ask = "import os, urllib.request as web; web.urlopen(os.environ['WORKBENCH_URL'] + '/health', timeout=20)"
            await client.call("create_task", title="a", persona_id="implementer", run=f'{sys.executable} -c "{ask}"')
            while (await client.call("wait_for_task", task_id=2))["status"] not in ("completed", "failed"):
                pass
            assert (await client.call("get_task", task_id=2))["error_message"] is None
            await client.call("terminate_agent", agent_id=agent["agent_id"])


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_after_a_crash_the_project_is_free_and_the_next_server_takes_its_place(
    settings: Settings, serve: Serve, command: Command
) -> None:
    process, url = await serve("--port", "0")
    server_info = ServerFile(settings.server_file).load()
    process.kill()
    await process.communicate()
    assert json.loads(settings.server_file.read_text())["pid"] == process.pid
    ran = await command("--json", "call", "whoami")
    assert (ran.status, json.loads(ran.out)["level"]) == (0, "operator")
    again, same = await serve()
    assert same == url
    assert ServerFile(settings.server_file).load().operator_token not in (None, server_info.operator_token)
    again.send_signal(signal.SIGINT)
    await again.communicate()
    assert again.returncode == 0

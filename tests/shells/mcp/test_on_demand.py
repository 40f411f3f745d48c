"""The MCP endpoint loads its library with the first request, also when that load is interrupted or fails."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import pytest

from tests.conftest import Served
from tests.shells.conftest import Visit, error_of
from tests.shells.mcp.test_server import INITIALIZE, headers
from workbench.shells.mcp import in_process, on_demand
from workbench.shells.mcp.in_process import McpApplication

pytestmark = pytest.mark.anyio

AT_ONCE = 5
HEADERS = headers(None)


async def initialize(client: httpx2.AsyncClient) -> httpx2.Response:
    return await client.post("/mcp", json=INITIALIZE, headers=HEADERS)


class Import:
    """Stands before the import, and lets it pass when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._begun, self._passes = threading.Event(), threading.Event()
        monkeypatch.setattr(on_demand, "_imported", self._imported)

    def _imported(self) -> type[McpApplication]:
        self._begun.set()
        self._passes.wait()
        return McpApplication

    async def begun(self) -> None:
        await asyncio.to_thread(self._begun.wait)

    def go_on(self) -> None:
        self._passes.set()


async def test_requests_that_meet_wait_for_one_load_while_others_are_answered(
    served: Served, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Counted(McpApplication):
        def __init__(self, *arguments: object) -> None:
            made.append(self)
            super().__init__(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(in_process, "McpApplication", Counted)
    monkeypatch.setattr(sys.modules[__name__], "McpApplication", Counted)
    importing, client = Import(monkeypatch), visit()
    first = [asyncio.create_task(initialize(client)) for _ in range(AT_ONCE)]
    await importing.begun()
    assert (await client.get("/health")).status_code == 200
    first[0].cancel()
    importing.go_on()
    answers = await asyncio.gather(*first[1:], initialize(client))
    assert [answer.status_code for answer in answers] == [200] * AT_ONCE
    assert len({answer.headers["mcp-session-id"] for answer in answers}) == AT_ONCE
    assert len(made) == 1


async def test_a_stop_refuses_the_requests_that_wait_for_the_load(
    served: Served, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    importing = Import(monkeypatch)
    asking = asyncio.create_task(initialize(visit()))
    await importing.begun()
    stopping = asyncio.create_task(served.servers.stop())
    assert error_of(await asking) == (503, "SERVER_STOPPING")
    importing.go_on()
    await stopping


async def test_a_load_that_fails_is_a_coded_refusal_and_the_next_request_tries_again(
    served: Served, visit: Visit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = visit()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, in_process.__name__, None)
        for refused in await asyncio.gather(*(initialize(client) for _ in range(AT_ONCE))):
            assert error_of(refused) == (503, "MCP_FAILED")
        assert (await client.get("/health")).status_code == 200
    assert in_process.__name__ in caplog.text
    assert (await initialize(client)).status_code == 200


COMMANDS = """
import contextlib, io, sys
from workbench.cli import main

for command in sys.argv[1:]:
    sys.argv = ["workbench", *command.split()]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()
print({"mcp", "mcp_types", "starlette", "uvicorn", "jsonschema", "duckdb", "papermill"} & {*sys.modules})
"""
KERNEL = """
import json, signal, sys, threading, urllib.request
from concurrent.futures import ThreadPoolExecutor
from IPython.core.interactiveshell import InteractiveShell

REQUEST, HEADERS = json.loads(sys.argv[1]), json.loads(sys.argv[2])
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "workbench")
shell.run_line_magic("workbench", "start --port 0")
url = shell.user_ns["wb"].server.url
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
asked = threading.Barrier(4 + 1)

def initialize(_):
    asked.wait()
    body = json.dumps(REQUEST).encode()
    headers = HEADERS | {"Content-Type": "application/json"}
    with opener.open(urllib.request.Request(url + "/mcp", body, headers)) as answer:
        return answer.status

try:
    assert opener.open(url + "/health").status == 200
    shell.run_line_magic("workbench", "status")
    assert not {"mcp", "mcp_types"} & {*sys.modules}
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(initialize, range(4))
        try:
            asked.wait()
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            pass
        assert [*answers] == [200] * 4
    assert "mcp" in sys.modules
finally:
    shell.run_line_magic("workbench", "stop")
"""


def run(code: str, *arguments: str, project: Path) -> str:
    """The output of a new interpreter, in a project."""
    argv = [sys.executable, "-c", code, *arguments]
    ran = subprocess.run(argv, cwd=project, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.long
@pytest.mark.timeout(180)
def test_commands_import_neither_the_mcp_library_nor_other_heavy_modules(tmp_path: Path) -> None:
    commands = ["--help", "sweep --help", "init", "status", "tasks", "agents", "tools", "stop"]
    assert run(COMMANDS, *commands, project=tmp_path).endswith("set()\n")


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_kernel_loads_the_library_on_the_first_requests_despite_an_interrupt(tmp_path: Path) -> None:
    run(KERNEL, json.dumps(INITIALIZE), json.dumps(HEADERS), project=tmp_path)

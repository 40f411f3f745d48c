"""Web pages of this machine may use the servers only if they are their own or those of a running Jupyter server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL
from pathlib import Path

import pytest

from tests.conftest import Served
from workbench.client import HttpClient
from workbench.errors import Refused, WorkbenchError
from workbench.shells.origins import WebOrigin, jupyter_origins, parse_origin

GONE = 2**22 + 1
"""A process id that Linux never gives."""


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which Jupyter servers write who they are."""
    place = tmp_path / "runtime"
    place.mkdir()
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(place))
    return place


def write(runtime: Path, name: str, **server: object) -> None:
    (runtime / name).write_text(json.dumps(server))


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://127.0.0.1:8888", WebOrigin("localhost", 8888)),
        ("http://LocalHost:8888/lab", WebOrigin("localhost", 8888)),
        ("http://[::1]:8888", WebOrigin("localhost", 8888)),
        ("http://localhost", WebOrigin("localhost", 80)),
        ("https://lab.example", WebOrigin("lab.example", 443)),
        *(
            (url, None)
            for url in ("null", "", "localhost:8888", "file:///etc", "http://", "http://a:99999", "http://[a")
        ),
    ],
)
def test_an_origin_is_a_host_and_a_port(url: str, origin: WebOrigin | None) -> None:
    assert parse_origin(url) == origin


def test_only_running_jupyter_servers_count(runtime: Path) -> None:
    assert list(jupyter_origins()) == []
    write(runtime, "jpserver-1.json", pid=os.getpid(), url="http://lab.example:8890/")
    write(runtime, "jpserver-2.json", pid=GONE, url="http://localhost:8891/")
    write(runtime, "jpserver-3.json", pid=os.getpid())
    write(runtime, "kernel-4.json", pid=os.getpid(), url="http://localhost:8892/")
    (runtime / "jpserver-5.json").write_text("{")
    (runtime / "jpserver-6.json").write_text("[]")
    assert set(jupyter_origins()) == {WebOrigin("lab.example", 8890), WebOrigin("localhost", 8890)}


async def code(served: Served, origin: str) -> str | None:
    """The code with which a page of an origin is refused; None: it is answered."""
    async with HttpClient(served.info.url, served.workbench.operator_token) as client:
        client._http.headers["Origin"] = origin
        try:
            await client.call("whoami")
        except WorkbenchError as error:
            return error.code if isinstance(error, Refused) else repr(error)
    return None


@pytest.mark.anyio
async def test_a_page_of_the_jupyter_server_is_answered_while_that_runs(served: Served, runtime: Path) -> None:
    pages = ("http://localhost:8888", "http://127.0.0.1:8888")
    assert [await code(served, page) for page in pages] == ["BAD_ORIGIN"] * 2
    write(runtime, "jpserver-1.json", pid=os.getpid(), url="http://localhost:8888/")
    assert [await code(served, page) for page in pages] == [None] * 2
    assert await code(served, "http://localhost:8889") == "BAD_ORIGIN"
    write(runtime, "jpserver-1.json", pid=GONE, url="http://localhost:8888/")
    assert [await code(served, page) for page in pages] == ["BAD_ORIGIN"] * 2


@pytest.mark.anyio
@pytest.mark.long
@pytest.mark.timeout(120)
async def test_a_real_jupyter_server_is_recognised(served: Served, runtime: Path) -> None:
    options = ("--no-browser", "--allow-root", "--port=0", "--ServerApp.ip=127.0.0.1")
    argv = (sys.executable, "-m", "jupyter_server", *options)
    server = await asyncio.create_subprocess_exec(*argv, cwd=runtime, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    try:
        while not (found := set(jupyter_origins())):
            assert server.returncode is None
            await asyncio.sleep(0.05)
        (origin,) = found
        assert await code(served, f"http://localhost:{origin.port}") is None
    finally:
        server.kill()
        await server.wait()
    assert await code(served, f"http://localhost:{origin.port}") == "BAD_ORIGIN"

"""A server that may open few files, and more clients than that: it answers others all the while, and ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.users import USERS, python_of
from workbench.system.interpreter import many_files

pytestmark = pytest.mark.long

FILES = 1_024
CROWD = 1_100
FEW_FILES = ("prlimit", f"--nofile={FILES // 2}:{FILES}", "--")
UPGRADE = b"GET /ws/me HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
SENT = (
    b"",
    b"GET /health HTTP/1.1\r\nHost:",
    b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"POST /api/ops/ping HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\nContent-Length: 9\r\n\r\n{",
    b"NOT HTTP\r\n\r\n",
    UPGRADE,
    UPGRADE + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
)
"""What each client sends before it falls silent."""


@dataclass
class Own:
    """A server in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    user: int

    @property
    def files(self) -> int:
        return psutil.Process(self.process.pid).num_fds()

    def limit_files(self, limit: int) -> None:
        command = ["prlimit", f"--pid={self.process.pid}", f"--nofile={limit}:{FILES}"]
        subprocess.run(command, user=self.user, group=self.user, check=True)

    def connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def answers(self) -> None:
        with self.connected() as asking:
            asking.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert asking.recv(15) == b"HTTP/1.1 200 OK"

    def interrupt(self) -> None:
        """End it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(30) == 0


Start = Callable[..., Own]


@pytest.fixture(params=USERS)
def start(request: pytest.FixtureRequest, place: Path) -> Iterator[Start]:
    """`start(stderr, name=value)`: a server of a user, with settings of its own, which may open `FILES` files."""
    user, python = request.param, python_of(request.param)
    os.chown(place, user, user)
    own = {"WORKBENCH_CONFIG": str(place / "config"), "WORKBENCH_PROJECT": str(place), **python.environment}
    with contextlib.ExitStack() as ends:

        def started(stderr: int | Path, **changes: object) -> Own:
            env = {f"WORKBENCH_{name.upper()}": str(value) for name, value in changes.items()}
            process = subprocess.Popen(
                [*FEW_FILES, python.executable, "-m", "workbench.cli", "serve", "--port", "0"],
                cwd=place,
                env=os.environ | own | env,
                user=user,
                group=user,
                stdout=subprocess.PIPE,
                stderr=ends.enter_context(stderr.open("wb")) if isinstance(stderr, Path) else stderr,
            )
            ends.enter_context(process)
            ends.callback(process.kill)
            assert process.stdout is not None
            line = process.stdout.readline().decode()
            return Own(process, int(line.partition(" (MCP")[0].rpartition(":")[2]), user)

        yield started


@pytest.fixture
def crowd() -> Iterator[Callable[[Own], None]]:
    """`crowd(server)`: clients that connect, send a part of something, and fall silent."""
    with contextlib.ExitStack() as ends:
        if ends.enter_context(many_files()) < CROWD + 200:
            pytest.skip("this system allows too few files for so many clients")

        def come(server: Own) -> None:
            for number in range(CROWD):
                client = ends.enter_context(server.connected())
                with contextlib.suppress(ConnectionError):
                    client.sendall(SENT[number % len(SENT)])

        yield come


def test_a_crowd_of_silent_clients_keeps_nobody_else_out(
    start: Start, crowd: Callable[[Own], None], tmp_path: Path
) -> None:
    server = start(tmp_path / "stderr", handshake_seconds=2)
    before = server.files
    for _ in range(2):
        crowd(server)
        for _ in range(20):
            server.answers()
        assert server.files < FILES
    server.interrupt()
    assert before < 100
    written = (tmp_path / "stderr").read_text()
    assert written.count("wait for a request") == 1
    assert len(written.splitlines()) <= 3, written


def test_a_server_that_has_no_files_left_closes_silent_connections_and_says_so_once(
    start: Start, tmp_path: Path
) -> None:
    server = start(tmp_path / "stderr")
    server.limit_files(server.files + 20)
    with contextlib.ExitStack() as silent:
        for _ in range(60):
            silent.enter_context(server.connected())
        server.answers()
    server.answers()
    server.interrupt()
    written = (tmp_path / "stderr").read_text()
    assert written.count("connections cannot be accepted for now: Too many open files") == 1
    assert len(written.splitlines()) == 1, written


def test_a_server_whose_log_is_not_read_answers_and_ends(start: Start, tmp_path: Path) -> None:
    unread, log = os.pipe()
    os.set_blocking(log, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(log, bytes(65_536))
    os.set_blocking(log, True)
    server = start(log, max_handshakes=1)
    with server.connected(), server.connected():  # the second one is logged
        for _ in range(3):
            server.answers()
    server.interrupt()
    os.close(unread)
    os.close(log)


def test_a_server_logs_on_its_standard_error(start: Start, tmp_path: Path) -> None:
    server = start(tmp_path / "stderr", max_handshakes=1)
    with server.connected(), server.connected():
        server.answers()
    server.interrupt()
    (line,) = (tmp_path / "stderr").read_text().splitlines()
    assert "WARNING workbench.shells.connections: more than 1 connections wait" in line

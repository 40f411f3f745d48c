"""B24: silent clients, more than a server may open files: how long others wait for answers, and how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench.child import environment
from tests.bench.project import scratch
from tests.bench.rows import Row, Samples, within
from tests.bench.ws_load import more_files

FILES = 1_024
SILENT = 1_100
ASKED = 100
HALF = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SERVE = ("-m", "workbench.cli", "serve", "--port", "0")


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Each round has a server of its own; half of its silent clients have sent a part of a request."""
    more_files()
    waits, ends = zip(*(_round(10 if quick else ASKED) for _ in range(1 if quick else rounds)), strict=True)
    return {"longest answer": Samples(waits, unit="ms"), "end after SIGINT": Samples(ends, unit="ms")}


def _round(asked: int) -> tuple[float, float]:
    with scratch() as directory, _server(directory) as (process, port), contextlib.ExitStack() as silent:
        for number in range(SILENT):
            client = silent.enter_context(socket.create_connection(("127.0.0.1", port)))
            with contextlib.suppress(ConnectionError):
                client.sendall(HALF * (number % 2))
        longest = max(_answer(port) for _ in range(asked))
        began = time.perf_counter()
        process.send_signal(signal.SIGINT)
        process.wait()
        return longest * 1e3, (time.perf_counter() - began) * 1e3


@contextlib.contextmanager
def _server(root: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = ["sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh", sys.executable, *SERVE]
    extra = {"WORKBENCH_PROJECT": str(root), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment() | extra, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline().partition(" (MCP")[0].rpartition(":")[2])
        finally:
            process.kill()


def _answer(port: int) -> float:
    """How long a client that connects now waits for its answer."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(HALF + b"Connection: close\r\n\r\n")
        if client.recv(15) != b"HTTP/1.1 200 OK":
            raise RuntimeError("the server did not answer")
    return time.perf_counter() - began


ROW = Row(
    "B24",
    f"{SILENT:,} clients that stay silent, {FILES:,} open files: {ASKED} others ask; then the server ends",
    "–",
    {"longest answer": within(1_000, "ms"), "end after SIGINT": within(5_000, "ms")},
    run,
)

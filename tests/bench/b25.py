"""B25: the processor time that `workbench mcp` takes until it has answered `initialize`."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from tests.bench.child import environment
from tests.bench.project import scratch
from tests.bench.rows import SHORT, Row, Samples, take_turns, within

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
CODE = [sys.executable, "-m", "workbench.cli"]


@contextlib.contextmanager
def serving(project: Path) -> Iterator[None]:
    """A server of a new project, in a process of its own."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(project)], check=True)
    command = [*CODE, "--project", str(project), "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            while "url" not in _known(project):
                assert server.poll() is None, "the server has ended"
                time.sleep(0.05)
            yield
        finally:
            server.terminate()


def _known(project: Path) -> dict[str, Any]:
    """The content of `server.json`, once it exists."""
    try:
        known: dict[str, Any] = json.loads((project / ".aiswarm" / "server.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known


def answer(project: Path) -> float:
    """Seconds of processor time of the process, with those it started, when its answer is there."""
    command = [*CODE, "--project", str(project), "mcp"]
    with subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        assert "serverInfo" in json.loads(process.stdout.readline())["result"]
        used = psutil.Process(process.pid).cpu_times()
        process.stdin.close()
    return float(used.user + used.system + used.children_user + used.children_system)


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Seconds until the answer is there."""
    with scratch() as directory, serving(directory):
        took = take_turns(rounds if quick else rounds + SHORT, ours=lambda: answer(directory))
    return {"": Samples(took["ours"], unit="s", note="protocol 2025-11-25, no token")}


ROW = Row("B25", "processor time until `workbench mcp` has answered `initialize`", "–", {"": within(0.7, "s")}, run)

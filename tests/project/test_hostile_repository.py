"""A stranger's repository is cloned or unpacked, and every command is run in it: nothing of it runs or is believed."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import psutil
import pytest

from tests.project.every_command import everything
from tests.project.hostile import TOKEN, Hostile, make
from tests.users import ordinary_user, python_of

STRANGERS_HOST = "127.0.0.1"
PORTS_NOBODY_HAD = range(20_000, 30_000)
"""Below those that systems hand out, and that KOI nodes of other tests have: clients come back to theirs."""
OF_THEIR_OWN = ("demo", "koi demo")
"""Commands that make projects of their own: neither who owns this one nor its server makes a difference to them."""
LOOKERS_REFUSALS = ("STATE_TRACKED", "STATE_NOT_TRUSTED")


class Listener:
    """The stranger's server; it notes who calls."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []
        self._socket = _listening()
        self.url = f"http://{STRANGERS_HOST}:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                self.calls.append(connection.recv(65_536))
                body = json.dumps({"status": "ok", "nonce": "n"})
                connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


LAUNCHER = Path("workbench", "programs", f"launcher.box.{sys.implementation.cache_tag}.pyc")
"""The launcher of boxes, compiled once for a user whose Workbench another one has installed."""


def _listening() -> socket.socket:
    for port in random.sample(PORTS_NOBODY_HAD, k=100):
        with suppress(OSError):
            return socket.create_server((STRANGERS_HOST, port))
    raise AssertionError("no port is free")


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


def give(made: Hostile, user: int) -> dict[str, str]:
    """Make everything the user's; the environment of its commands."""
    home, temporary = made.place / "home", made.place / "tmp"
    home.mkdir()
    temporary.mkdir()
    for path in (made.place, *made.place.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WORKBENCH_")}
    return {**kept, "HOME": str(home), "TMPDIR": str(temporary), "GIT_CONFIG_NOSYSTEM": "1"}


def run_all(made: Hostile, user: int, environment: dict[str, str], typing: list[list[str]]) -> list[dict[str, Any]]:
    """The reports of commands that a user types."""
    script = [sys.executable, "-m", "tests.project.every_command", str(made.place), str(user)]
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        script, cwd=root, env=environment, input=json.dumps(typing), capture_output=True, text=True, timeout=500
    )
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, (typing[len(found)], ran.stderr)
    assert TOKEN not in ran.stderr
    return found


def assert_nothing_was_run(reports: list[dict[str, Any]]) -> None:
    assert {" ".join(report["words"]): report["marks"] for report in reports if report["marks"]} == {}


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("clone", [True, False], ids=["cloned-as-this-user", "unpacked-as-ordinary-user"])
def test_no_command_in_a_hostile_repository_runs_believes_or_writes_anything(
    place: Path, listener: Listener, clone: bool
) -> None:
    user, without = (os.geteuid(), OF_THEIR_OWN) if clone else (ordinary_user(), ())
    made = make(place, listener.url, clone=clone)
    reports = run_all(made, user, give(made, user), everything(*without))
    assert_nothing_was_run(reports)
    compiled = {made.place / "home" / ".config" / path for path in (".", "workbench", LAUNCHER.parent, LAUNCHER)}
    changed = {" ".join(report["words"]): set(map(Path, report["changed"])) - compiled for report in reports}
    assert {words: paths for words, paths in changed.items() if paths} == {}
    assert [report["words"] for report in reports if TOKEN in report["text"]] == []
    assert listener.calls == []
    refused = {report["words"][0] for report in reports if any(code in report["text"] for code in LOOKERS_REFUSALS)}
    assert refused >= {"status", "serve", "init", "plan", "agents", "mcp", "sql", "call"}
    (doctor,) = (report["text"] for report in reports if report["words"] == ["doctor"])
    assert "warning  state" in doctor


def test_the_traps_of_the_repository_work(place: Path, listener: Listener) -> None:
    made = make(place, listener.url, clone=False)
    identity = ("-c", "user.name=Person", "-c", "user.email=person@example.org")
    for words in (("diff",), ("diff", "--cached", "HEAD~0"), ("commit", "-a", "-m", "x"), ("fetch",)):
        subprocess.run(["git", *identity, *words], cwd=made.project, stdin=DEVNULL, capture_output=True)
    marks = {path.name for path in made.marks.iterdir()}
    assert marks >= {"core.fsmonitor", "filter.evil.clean", "diff.evil.command", "hook-pre-commit", "fetched"}, marks


WORK = [
    words.split()
    for words in (
        *("plan plan.yaml", "worktrees create lab", "spawn implementer --worktree lab --profile script"),
        *("worktrees run lab -- touch new.txt", "worktrees diff lab --uncommitted", "worktrees update lab"),
        *("worktrees status lab", "worktrees conflicts"),
    )
]
"""Commands that reach git, workers and files."""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_server_in_a_hostile_repository_runs_nothing_of_it(place: Path, listener: Listener) -> None:
    user = ordinary_user()
    made = make(place, listener.url, state=False, clone=True)
    environment = give(made, user) | python_of(user).environment
    with served(made, user, environment) as (server, lines):
        assert "at http://127.0.0.1:" in lines[0]
        assert "Not used, because you have not trusted it: .aiswarm/settings.toml (host, allow_remote," in lines[1]
        assert ".aiswarm/profiles/script.yaml" in lines[1]
        listening = {one.laddr.ip for one in server.net_connections() if one.status == psutil.CONN_LISTEN}
        assert listening == {"127.0.0.1"}
        assert (made.project / ".aiswarm").stat().st_mode & 0o777 == 0o700
        reports = run_all(made, user, environment, [*WORK, *everything(*OF_THEIR_OWN)])
    assert [(one["words"], one["text"]) for one in reports[: len(WORK)] if one["status"] != 0] == []
    assert_nothing_was_run(reports)
    assert (made.victim / "secret.txt").read_text() == "the user's own\n"


@contextmanager
def served(made: Hostile, user: int, environment: dict[str, str]) -> Iterator[tuple[psutil.Process, list[str]]]:
    """The project, served by `workbench serve`; its process, and the first lines that it wrote."""
    argv = [python_of(user).executable, "-m", "workbench.cli", "serve", "--port", "0"]
    with subprocess.Popen(
        argv, cwd=made.project, env=environment, stdout=subprocess.PIPE, text=True, user=user, group=user
    ) as process:
        assert process.stdout is not None
        try:
            yield psutil.Process(process.pid), [process.stdout.readline() for _ in range(2)]
        finally:
            process.terminate()
            process.wait(60)

"""The fork server: a command that it starts is as confined, and ends as surely, as one that is started alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.git.parts import ended
from workbench.confinement import Box, abilities, box_for_worktree
from workbench.confinement.starter import StartedCommand, Starter
from workbench.git.run import Running, Start, start_alone

pytestmark = pytest.mark.skipif(not abilities().abi, reason="this system has no Landlock")

FACTS = """
import os, resource, signal, socket, sys
def tried(action):
    try:
        return action()
    except OSError as error:
        return error
own = f"/proc/{os.getpid()}"
print(tried(lambda: open("/etc/shadow").read()), tried(lambda: os.listdir("/proc/1")), tried(lambda: socket.socket(1)))
print(tried(lambda: os.listdir("/dev/shm")), tried(lambda: open(f"/dev/shm/{os.getpid()}", "x").close()))
print(sorted(os.listdir(f"{own}/fd")), os.getcwd(), sorted(os.environ.items()), sys.stdin.read())
print(os.getsid(0) == os.getpgid(0), signal.pthread_sigmask(0, ()), os.umask(0))
print(resource.getrlimit(resource.RLIMIT_CORE), [os.access(path, os.W_OK) for path in ("/", "/tmp", ".")])
print(*(line for line in open(f"{own}/status") if line.startswith(("Cap", "NoNew", "Seccomp", "SigBlk", "SigIgn"))))
sys.exit("its last words")
"""
STAYS = """
import os
child, tells = os.pipe()
if os.fork():
    os.read(child, 1)  # what it started ends with it, also before that has said who it is
else:
    os.setsid()
    print(os.getpid(), flush=True)
    os.write(tells, b".")
    os.execve("/bin/sh", ["sh", "-c", "exec > /dev/null 2>&1; while :; do sleep 60; done"], {})
"""


@dataclass(frozen=True)
class Place:
    """A box, and what starts commands in it."""

    box: Box
    starter: Starter

    @contextmanager
    def started(self, *command: str, start: Start | None = None) -> Iterator[Running]:
        """A command in the box; what it prints can be read."""
        environment = self.box.environment(os.environ)
        with (self.box.scratch.parent / "input").open("rb") as stdin:
            by = start or self.starter.started
            with by(self.box.guarded(command), cwd=self.box.write[0], env=environment, stdin=stdin) as process:
                yield process

    def end_of(self, *command: str, start: Start | None = None) -> tuple[int, bytes, bytes]:
        """The status and the output of a command."""
        with self.started(*command, start=start) as process:
            assert process.stdout
            assert process.stderr
            out, err = process.stdout.read(), process.stderr.read()
        return process.wait(), out, err

    @property
    def servers(self) -> list[psutil.Process]:
        """The fork servers of this process."""
        alive = (child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE)
        return [child for child in alive if "fork_server" in " ".join(child.cmdline())]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    for name in ("worktree", "repository"):
        (tmp_path / name).mkdir()
    (tmp_path / "input").write_text("its input")
    box = box_for_worktree(
        worktree=tmp_path / "worktree", git_dir=tmp_path / "repository", objects=(), scratch=tmp_path / "scratch"
    )
    with Starter() as starter:
        yield Place(box, starter)


def line_of(process: Running) -> str:
    assert process.stdout
    return process.stdout.readline().decode()


def test_a_command_finds_what_it_finds_when_it_is_started_alone(place: Place) -> None:
    place.end_of("true")
    for command in (
        [sys.executable, "-I", "-c", FACTS],
        ["sh", "-c", "kill -TERM $$"],
        ["sh", "-c", "exit 75"],
        ["no-such-command"],
    ):
        assert place.end_of(*command) == place.end_of(*command, start=start_alone), command
    assert len(place.servers) == 1


def test_commands_of_many_threads_do_not_mix(place: Place) -> None:
    with ThreadPoolExecutor(4) as threads:
        ends = list(threads.map(lambda number: place.end_of("sh", "-c", f"echo {number}; exit {number}"), range(24)))
    assert ends == [(number, b"%d\n" % number, b"") for number in range(24)]
    assert len(place.servers) == 1


@pytest.mark.parametrize("waits", [False, True], ids=["that ends", "that hangs"])
def test_what_a_command_started_ends_with_it(place: Place, waits: bool) -> None:
    program = f"{STAYS}\nif {waits}: import time; time.sleep(600)"
    with pytest.raises(RuntimeError), place.started(sys.executable, "-I", "-c", program) as process:
        pid = int(line_of(process))
        if not waits:
            process.wait(60)
        raise RuntimeError
    assert ended(pid)


def test_a_command_that_takes_too_long_is_waited_for_no_longer(place: Place) -> None:
    with pytest.raises(subprocess.TimeoutExpired), place.started("sleep", "600") as process:
        process.wait(0.05)
    assert process.wait() == -signal.SIGTERM


def test_another_fork_server_takes_the_place_of_one_that_was_killed(place: Place) -> None:
    with place.started("sh", "-c", "echo started; exec sleep 600") as process:
        assert line_of(process) == "started\n"
        (server,) = place.servers
        server.kill()
        assert process.wait(60) == -signal.SIGKILL
    assert place.end_of("echo", "again")[:2] == (0, b"again\n")
    assert server not in place.servers


def test_commands_are_started_alone_once_the_fork_server_is_closed(place: Place) -> None:
    place.end_of("true")
    place.starter.close()
    assert place.servers == []
    with place.started("echo", "alone") as process:
        assert not isinstance(process, StartedCommand)
        assert line_of(process) == "alone\n"


OWNER = """
import json, os, sys
from pathlib import Path
from workbench.confinement.starter import Starter
starter, (argv, environment) = Starter(), json.load(sys.stdin)
with starter.started(argv, cwd=Path("/"), env=environment, stdin=sys.stdin) as process:
    print(process.stdout.readline().decode(), flush=True)
    process.wait()
"""


def test_all_ends_with_the_process_that_owns_it(place: Place) -> None:
    argv = place.box.guarded(["sh", "-c", "echo $PPID; exec sleep 600"])
    request = json.dumps([argv, place.box.environment(os.environ)])
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", OWNER], stdin=pipe, stdout=pipe, text=True) as owner:
        assert owner.stdin
        assert owner.stdout
        owner.stdin.write(request)
        owner.stdin.close()
        guard = psutil.Process(int(owner.stdout.readline()))
        server = guard.parent()
        assert server
        assert server.ppid() == owner.pid
        owner.kill()
        assert psutil.wait_procs([guard, server], timeout=30)[1] == []

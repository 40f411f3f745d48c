"""What is open to everybody is closed in a box: sockets, signals, other processes, the machine."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.confinement.scene import SOMEBODY, SYSTEM_PYTHON, Scene

pytestmark = [pytest.mark.timeout(120), pytest.mark.long]

PREPARED = """
import ctypes, os, socket
PORT, UDP, SUPERVISOR = (int(os.environ[name]) for name in ("PORT", "UDP", "SUPERVISOR"))
UNIX, SECRET = os.environ["UNIX"], os.environ["SECRET"]
libc = ctypes.CDLL(None, use_errno=True)

def call(function, *arguments):
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

"""
WAYS: dict[str, str] = {
    name: f"{PREPARED}{way}print('got out')"
    for name, way in yaml.safe_load(Path(__file__).with_name("ways_out.yaml").read_text("utf-8")).items()
}

REFUSED = re.compile(r"denied|not permitted|not implemented", re.IGNORECASE)


@pytest.fixture
def around(scene: Scene) -> Iterator[dict[str, str]]:
    """What a worker would like to reach."""
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(scene.root / "socket"))
        (scene.root / "socket").chmod(0o777)
        unix.listen()
        supervisor = stack.enter_context(by(scene, [SYSTEM_PYTHON, "-c", "print(flush=True); input()"], {}))
        assert supervisor.stdout
        supervisor.stdout.readline()
        yield {
            "PORT": str(tcp.getsockname()[1]),
            "UDP": str(udp.getsockname()[1]),
            "UNIX": str(scene.root / "socket"),
            "SUPERVISOR": str(supervisor.pid),
            "SECRET": str(scene.project / "untracked.txt"),
        }
        supervisor.kill()


def by(scene: Scene, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    """A command of whoever works here, in no box."""
    return subprocess.Popen(
        command,
        cwd=scene.worktree,
        env={"PATH": os.defpath, **environment},
        user=scene.user,
        group=scene.user,
        extra_groups=None if scene.user is None else [],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_way_out_that_is_open_elsewhere_is_closed_in_a_box(scene: Scene, around: dict[str, str], way: str) -> None:
    with by(scene, [SYSTEM_PYTHON, "-c", way], around) as free:
        said, _ = free.communicate(timeout=60)
    if not said.endswith("got out\n"):
        pytest.skip(f"closed to everybody here: {said.splitlines()[-1]}")
    said = scene.run([SYSTEM_PYTHON, "-c", way], **around).stdout
    assert "got out" not in said
    assert REFUSED.search(said)


def test_where_a_port_is_allowed_names_can_be_looked_up_and_the_rest_stays_closed(
    scene: Scene, around: dict[str, str]
) -> None:
    box = replace(scene.box, connect=(int(around["PORT"]),))

    def gets_out(name: str) -> bool:
        return "got out" in scene.run([SYSTEM_PYTHON, "-c", WAYS[name]], box, **around).stdout

    allowed = {"connecting to a port", "sending a datagram", "sending a datagram by IPv6"}
    sockets = ("connecting", "sending", "serving", "socket")
    assert {name for name in WAYS if any(word in name for word in sockets) and gets_out(name)} == allowed


def test_two_commands_in_boxes_of_the_same_kind_leave_each_other_alone(scene: Scene) -> None:
    first = subprocess.Popen(
        scene.wrap(["/bin/sh", "-c", "echo; read line"]),
        cwd=scene.worktree,
        env=scene.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with first:
        assert first.stdout is not None
        first.stdout.readline()
        second = scene.work('kill -9 "$OTHER"', OTHER=str(first.pid))
        first.communicate(b"\n")
    assert "not permitted" in second.stdout
    assert first.returncode == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a program that makes root of others")
def test_a_program_that_makes_root_of_others_makes_none_of_a_worker(scene: Scene) -> None:
    if scene.user != SOMEBODY:
        pytest.skip("it is root already")
    tools = scene.root / "tools"
    tools.mkdir()
    program = tools / "id"
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    program.chmod(0o4755)
    command = [str(program), "-u"]
    with by(scene, command, {}) as free:
        if free.communicate()[0] != "0\n":
            pytest.skip("this file system makes root of nobody")
    assert scene.run(command, replace(scene.box, read=(*scene.box.read, tools))).stdout == f"{SOMEBODY}\n"


def test_of_roots_powers_none_is_left_but_to_open_what_the_box_allows(scene: Scene) -> None:
    lines = scene.run(["grep", "-E", "^(CapPrm|CapEff|CapInh|CapAmb|NoNewPrivs)", "/proc/self/status"]).stdout
    found = {name: int(value, 16) for name, value in (line.split(":\t") for line in lines.splitlines())}
    own = 0 if scene.user or os.getuid() else 1 << 1
    assert found == {"CapInh": 0, "CapPrm": own, "CapEff": own, "CapAmb": 0, "NoNewPrivs": 1}


def test_nothing_is_typed_into_the_persons_terminal(scene: Scene) -> None:
    type_something = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b'x'); print('got out')"

    def typed(command: list[str]) -> str:
        person, worker = pty.openpty()
        try:
            return subprocess.run(
                command,
                cwd=scene.worktree,
                env=scene.environment,
                stdin=worker,
                capture_output=True,
                text=True,
                # It becomes the terminal of the new session.
                preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)),
                timeout=60,
            ).stdout
        finally:
            os.close(person)
            os.close(worker)

    if scene.user is None and "got out" not in typed([sys.executable, "-c", type_something]):
        pytest.skip("this kernel lets nobody type for others")
    assert "got out" not in typed(scene.wrap([SYSTEM_PYTHON, "-c", type_something]))


def test_with_all_of_proc_to_read_other_processes_still_keep_theirs(scene: Scene, around: dict[str, str]) -> None:
    wider = replace(scene.box, read=(*scene.box.read, Path("/proc")))
    other = f"/proc/{around['SUPERVISOR']}"
    assert scene.run(["cat", f"{other}/comm"], wider).stdout == "python3\n"
    for private in ("environ", "maps", "mem", "auxv", "io", "fd/0", "root/etc/hostname", "cwd/shared.txt"):
        said = scene.run(["cat", f"{other}/{private}"], wider).stdout
        assert REFUSED.search(said), private

"""A box closes what is open outside: sockets, signals, other processes, the machine."""

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
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.confinement.scene import Scene
from tests.users import NOBODY, SYSTEM_PYTHON
from workbench.confinement import box_for_worktree

pytestmark = [pytest.mark.timeout(120), pytest.mark.long]

PREPARED = """
import ctypes, os, socket
PORT, UDP, SUPERVISOR = (int(os.environ[name]) for name in ("PORT", "UDP", "SUPERVISOR"))
UNIX, SECRET, OWNED, DATAGRAMS = (os.environ[name] for name in ("UNIX", "SECRET", "OWNED", "DATAGRAMS"))
libc = ctypes.CDLL(None, use_errno=True)

def call(function, *arguments):
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def raw_pair():
    numbers = (ctypes.c_int * 2)()
    call(libc.socketpair, socket.AF_UNIX, socket.SOCK_RAW, 0, numbers)
    return numbers

"""
WAYS: dict[str, str] = {
    name: f"{PREPARED}{way}print('got out')"
    for name, way in yaml.safe_load(Path(__file__).with_name("ways_out.yaml").read_text("utf-8")).items()
}
NAMES = {way: name for name, way in WAYS.items()}

REFUSED = re.compile(r"denied|not permitted|not implemented|refused|read-only|no such file", re.IGNORECASE)
OWN = ("serving", "sending a datagram", "shared memory", "a message queue")
"""How the ways begin that lead nowhere in a box with a network and memory of its own."""


@pytest.fixture
def around(scene: Scene) -> Iterator[dict[str, str]]:
    with surrounded(scene) as names:
        yield names


@contextmanager
def surrounded(scene: Scene) -> Iterator[dict[str, str]]:
    """The ports and processes that a worker would like to reach."""
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(scene.root / "socket"))
        (scene.root / "socket").chmod(0o777)
        unix.listen()
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(str(scene.root / "datagrams"))
        (scene.root / "datagrams").chmod(0o777)
        owned = scene.worktree / "owned"
        owned.write_text("#!/bin/sh\n")
        owned.chmod(0o755)
        scene.hand_over()
        supervisor = stack.enter_context(by(scene, ["/bin/sh", "-c", "echo; read line"], {}))
        assert supervisor.stdout
        supervisor.stdout.readline()
        yield {
            "PORT": str(tcp.getsockname()[1]),
            "UDP": str(udp.getsockname()[1]),
            "UNIX": str(scene.root / "socket"),
            "SUPERVISOR": str(supervisor.pid),
            "SECRET": str(scene.project / "untracked.txt"),
            "OWNED": str(owned),
            "DATAGRAMS": str(scene.root / "datagrams"),
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
def test_a_box_closes_each_way_out_that_is_open_outside(scene: Scene, around: dict[str, str], way: str) -> None:
    with by(scene, [SYSTEM_PYTHON, "-c", way], around) as free:
        said, _ = free.communicate(timeout=60)
    if not said.endswith("got out\n"):
        pytest.skip(f"closed to everybody here: {said.splitlines()[-1]}")
    names = {word: str(scene.box.inside(Path(value))) for word, value in around.items() if value.startswith("/")}
    said = scene.run([SYSTEM_PYTHON, "-c", way], **{**around, **names}).stdout
    if scene.namespaces and NAMES[way].startswith(OWN):
        return
    assert "got out" not in said
    assert REFUSED.search(said)


def test_an_allowed_port_permits_name_lookups_and_nothing_else(scene: Scene, around: dict[str, str]) -> None:
    box = replace(scene.box, connect=(int(around["PORT"]),))

    def gets_out(name: str) -> bool:
        return "got out" in scene.run([SYSTEM_PYTHON, "-c", WAYS[name]], box, **around).stdout

    allowed = {"connecting to a port", "sending a datagram", "sending a datagram by IPv6"}
    sockets = ("connecting", "sending", "serving", "socket")
    assert {name for name in WAYS if any(word in name for word in sockets) and gets_out(name)} == allowed


RECEIVE = """
import os, socket
here, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
here.bind("mailbox")
print("ready", flush=True)
_, (number,), _, _ = socket.recv_fds(here, 1, 1)
print(os.read(number, 99).decode())
"""
SEND = """
import os, socket
here, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
socket.send_fds(here, [b"x"], [os.open("mine.txt", os.O_RDONLY)], 0, os.environ["MAILBOX"])
"""


def test_two_workers_pass_each_other_no_open_file(scene: Scene) -> None:
    beside = scene.state / "worktrees" / "a-evil"
    neighbour = box_for_worktree(
        worktree=beside,
        git_dir=scene.state / "repositories" / "a-evil",
        objects=(),
        scratch=scene.state / "scratch" / "a-evil",
    )
    (scene.worktree / "mine.txt").write_text("of worker a")
    scene.hand_over()
    with scene.started([SYSTEM_PYTHON, "-c", RECEIVE], neighbour, cwd=beside) as receiver:
        assert receiver.stdout
        first = receiver.stdout.readline()
        sent = scene.run([SYSTEM_PYTHON, "-c", SEND], MAILBOX=str(beside / "mailbox")).stdout
        received, _ = receiver.communicate(timeout=60)
    assert "of worker a" not in received
    assert "ready" not in first
    assert REFUSED.search(sent)


def test_threads_processes_and_pairs_of_sockets_work_and_modes_can_be_set_as_usual(scene: Scene) -> None:
    script = """if True:
        import os, socket, subprocess, threading
        thread = threading.Thread(target=print, args=("thread",))
        thread.start()
        thread.join()
        subprocess.run(["echo", "process"])
        for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
            one, other = socket.socketpair(type=kind)
            one.send(b"x")
            print(other.recv(1))
        os.chmod("shared.txt", 0o1755), os.mkdir("sticky", 0o1777), os.open("new", os.O_CREAT, 0o755)
        print(oct(os.stat("shared.txt").st_mode))
    """
    stdout = scene.run([SYSTEM_PYTHON, "-uc", script]).stdout
    assert stdout.splitlines() == ["thread", "process", "b'x'", "b'x'", "0o101755"]


def test_in_a_shared_project_directories_keep_their_group_and_programs_get_no_rights(scene: Scene) -> None:
    for path in (scene.worktree, scene.own):
        os.chown(path, -1, scene.user or os.getgid())
        path.chmod(0o2755)
    done = scene.work("mkdir -p d/e && chmod g+s d/e && cp -a d copy && stat -c %a copy/e; chmod u+s shared.txt")
    assert done.stdout.startswith("2755\n")
    assert REFUSED.search(done.stdout.removeprefix("2755\n"))


def test_two_commands_in_boxes_of_the_same_kind_leave_each_other_alone(scene: Scene) -> None:
    with scene.started(["/bin/sh", "-c", "echo; read line"]) as first:
        assert first.stdout is not None
        first.stdout.readline()
        second = scene.work('kill -9 "$OTHER"', OTHER=str(first.pid))
        first.communicate("\n")
    assert "not permitted" in second.stdout
    assert first.returncode == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a program that makes root of others")
def test_a_program_that_makes_root_of_others_makes_none_of_a_worker(scene: Scene) -> None:
    if scene.user != NOBODY:
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
    assert scene.run(command, replace(scene.box, read=(*scene.box.read, tools))).stdout == f"{NOBODY}\n"


def test_root_in_a_box_keeps_no_capability_but_to_open_allowed_files(scene: Scene) -> None:
    lines = scene.run(["grep", "-E", "^(CapPrm|CapEff|CapInh|CapAmb|NoNewPrivs)", "/proc/self/status"]).stdout
    found = {name: int(value, 16) for name, value in (line.split(":\t") for line in lines.splitlines())}
    own = 0 if scene.user or os.getuid() else 1 << 1
    assert found == {"CapInh": 0, "CapPrm": own, "CapEff": own, "CapAmb": 0, "NoNewPrivs": 1}


def test_a_worker_cannot_type_into_the_persons_terminal(scene: Scene) -> None:
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
    assert scene.run(["cat", f"{other}/comm"], wider).stdout == "sh\n"
    for private in ("environ", "maps", "mem", "auxv", "io", "fd/0", "root/etc/hostname", "cwd/shared.txt"):
        stdout = scene.run(["cat", f"{other}/{private}"], wider).stdout
        assert REFUSED.search(stdout), private

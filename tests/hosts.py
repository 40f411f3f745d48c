"""Hosts on a network of their own, of one machine: each has its own name, processes, network and directory.

Linux namespaces stand for the hosts, which needs root. What they have in common is the code that they run; neither can
see the directory or the processes of another. All of it ends with the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

PREFIX = "10.231.7"
"""Of all addresses; nobody else is on the network."""
GATEWAY = f"{PREFIX}.1"
KINDS = ("--net", "--mount", "--uts", "--pid", "--ipc", "--fork")
"""The namespaces of a host."""
DYING = ("setpriv", "--pdeathsig=KILL")
SWITCH = f"""
ip link set lo up && ip link add br0 type bridge && ip address add {GATEWAY}/24 dev br0 && ip link set br0 up || exit 1
echo ready && exec sleep infinity
"""
HOST = """
hostname "$1" && ip link set lo up && mount --bind "$2/machine-id" /etc/machine-id || exit 1
for other in "$2"/../*; do
    [ "$other" -ef "$2" ] || mount -t tmpfs -o mode=000 none "$other" || exit 1
done
echo ready && exec sleep infinity
"""


def are_possible() -> bool:
    """Whether this machine lets these tests make namespaces and networks."""
    if sys.platform != "linux" or os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare"))):
        return False
    trial = ["unshare", *KINDS, "ip", "link", "add", "br0", "type", "bridge"]
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


class _Space:
    """Namespaces that last as long as a process in them."""

    def __init__(self, *argv: str) -> None:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self._keeper = subprocess.Popen([*DYING, "unshare", *argv], **pipes)
        assert self._keeper.stdout is not None
        with self._keeper.stdout as said:
            ready = said.readline()
        below = psutil.Process(self._keeper.pid).children() if ready else []
        self.pid = below[0].pid if below else self._keeper.pid
        """A process in them."""
        if ready != "ready\n":
            raise RuntimeError(f"{argv} ended with {self._keeper.wait()}")

    def end(self) -> None:
        """Kill all of its processes, if they have a number of their own there. May be called twice."""
        if self._keeper.poll() is None:
            psutil.Process(self.pid).kill()
            self._keeper.wait()


class Host:
    """A host of a `Network`, which gives it out.

    Attributes:
        address: where others reach it.
        home: its directory; to the others it is empty.
    """

    def __init__(self, name: str, address: str, home: Path, switch: _Space) -> None:
        self.name = name
        self.address = address
        self.home = home
        self._switch = switch
        (home / "machine-id").write_text(f"{uuid.uuid4().hex}\n")
        for directory in ("tmp", "user"):
            (home / directory).mkdir()
        self._processes: list[subprocess.Popen[str]] = []
        self.begin()

    def begin(self) -> None:
        """Switch it on; its directory is as it was."""
        self._space = _Space(
            *KINDS, "--mount-proc", "--kill-child=KILL", "sh", "-c", HOST, "host", self.name, str(self.home)
        )
        there = ["nsenter", "-t", str(self._space.pid), "-n", "ip"]
        here = ["nsenter", "-t", str(self._switch.pid), "-n", "ip"]
        port = f"to-{self.name}"
        # The kernel takes the cable of a host that was switched off away some time later.
        subprocess.run([*here, "link", "delete", port], capture_output=True, check=False)
        _run(*here, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(self._space.pid))
        _run(*here, "link", "set", port, "master", "br0", "up")
        _run(*there, "address", "add", f"{self.address}/24", "dev", "eth0")
        _run(*there, "link", "set", "eth0", "up")

    def end(self) -> None:
        """Switch it off: all of its processes are killed at once."""
        self._space.end()
        while self._processes:
            with suppress(BrokenPipeError), self._processes.pop() as process:  # what it no longer reads
                process.wait()

    def unplug(self) -> None:
        """Lose what it sends and what is sent to it, without telling either side."""
        _run("nsenter", "-t", str(self._switch.pid), "-n", "ip", "link", "set", f"to-{self.name}", "down")

    def plug(self) -> None:
        """Connect it again."""
        _run("nsenter", "-t", str(self._switch.pid), "-n", "ip", "link", "set", f"to-{self.name}", "up")

    @property
    def entering(self) -> list[str]:
        """The prefix of a command that runs there."""
        return [*DYING, "nsenter", "-t", str(self._space.pid), "-n", "-m", "-u", "-p", "-i", "--"]

    @property
    def environment(self) -> dict[str, str]:
        """What the environment of a command has there."""
        return os.environ | {"HOME": str(self.home / "user"), "TMPDIR": str(self.home / "tmp")}

    def popen(self, *argv: str, env: Mapping[str, str] | None = None, **more: Any) -> subprocess.Popen[str]:
        """Begin a command there."""
        process = subprocess.Popen([*self.entering, *argv], env=self.environment | dict(env or {}), text=True, **more)
        self._processes.append(process)
        return process

    def run(self, *argv: str, **more: Any) -> str:
        """What a command prints there."""
        process = self.popen(*argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        out, err = process.communicate()
        assert process.returncode == 0, f"{argv}: {err}"
        return str(out)


class Network:
    """Hosts that reach each other, and whatever `entering` starts, which is at `GATEWAY`."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._directory = directory
        self._stack = stack
        self._switch = _Space("--net", "sh", "-c", SWITCH)
        stack.callback(self._switch.end)

    @property
    def entering(self) -> list[str]:
        """The prefix of a command on this machine that the hosts reach at `GATEWAY`."""
        return ["nsenter", "-t", str(self._switch.pid), "-n", "--"]

    def hosts(self, *names: str) -> list[Host]:
        """Hosts with such names. All of a network are made at once, so that they hide their directories."""
        for name in names:
            (self._directory / name).mkdir()
        made = []
        for number, name in enumerate(names, 2):
            made.append(Host(name, f"{PREFIX}.{number}", self._directory / name, self._switch))
            self._stack.callback(made[-1].end)
        return made


@contextmanager
def network(directory: Path) -> Iterator[Network]:
    """A network; what its hosts have is in a directory of each below this one."""
    with ExitStack() as stack:
        yield Network(directory, stack)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)

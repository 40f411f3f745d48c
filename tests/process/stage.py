"""A stage for tests of processes: a table, and programs that ignore signals, fork and leave their session."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests import given
from workbench.process import ProcessRef, ProcessTable

DEADLINE = 20.0

PYTHON = [sys.executable, "-I", "-S", "-c"]

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"

SAY = """
import os
def say(name):
    with open(name + ".part", "w") as file:
        file.write(str(os.getpid()))
    os.rename(name + ".part", name)
"""


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@dataclass
class Stage:
    """A table, and a directory where the processes of a test write their pids."""

    path: Path
    table: ProcessTable
    refs: list[ProcessRef] = field(default_factory=list)

    def start(self, argv: Sequence[str], stdin: str | None = None, **env: str) -> ProcessRef:
        ref = self.table.start(
            argv,
            cwd=self.path,
            env={"PATH": os.environ["PATH"], **env},
            stdin_text=stdin,
            log=self.path / "log",
        )
        self.refs.append(ref)
        return ref

    def python(self, code: str, stdin: str | None = None, **env: str) -> ProcessRef:
        return self.start([*PYTHON, SAY + code], stdin, **env)

    def pid(self, name: str) -> int:
        """The pid that a process has written, once it has."""
        given.wait_until((self.path / name).exists)
        return int((self.path / name).read_text())

    def ended(self, ref: ProcessRef) -> None:
        given.wait_until(lambda: not self.table.alive(ref))

    @property
    def log(self) -> str:
        return (self.path / "log").read_text()


FORK = f"""
{STUBBORN}
def child(name, *steps):
    if os.fork() == 0:
        for step in steps:
            step()
        say(name)
        time.sleep(600)
        os._exit(0)
def orphan():
    if os.fork():
        os._exit(0)
"""

"""A machine that has nothing of a project: a directory of its own, in which its workers have everything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.hosts import Host

ROOT = Path(__file__).parents[1]
ACCESS = "of-those-who-may-reach-it"
"""The access token of a server that other hosts reach."""


class FarWorker:
    """A worker in a directory of its own, which has the server's address and a token of its machine.

    Args:
        host: where it runs; None: on this one.
    """

    def __init__(self, place: Path, url: str, token: str, *options: str, host: Host | None = None) -> None:
        self.place = place
        self._host = host
        place.mkdir(parents=True)
        self._token = place / "token"
        self._token.touch(mode=0o600)
        self._token.write_text(token)
        self._command = [sys.executable, "-P", "-m", "workbench.cli", "worker", "--server", url]
        self._command += ["--token-file", str(self._token), "--directory", str(place / "work"), *options]
        self.process: subprocess.Popen[Any] | None = None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it, or start it again."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.place), "PYTHONPATH": str(ROOT)}
        with (self.place / "log").open("ab") as log:
            where: dict[str, Any] = {"cwd": self.place, "stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            if self._host is not None:
                self.process = self._host.popen(
                    *self._command, env=environment | {"WORKBENCH_ACCESS_TOKEN": ACCESS}, **where
                )
            else:
                self.process = subprocess.Popen(self._command, env=environment, **where)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it by a signal."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)
            self.process.wait()

    @property
    def log(self) -> str:
        """What it has said."""
        return (self.place / "log").read_text("utf-8", "replace")


def workers_in(home: Path) -> list[psutil.Process]:
    """The workers that run with a home, which stands for that of another machine."""
    return [one for one in psutil.process_iter() if _is_worker_in(one, home)]


def _is_worker_in(process: psutil.Process, home: Path) -> bool:
    try:
        return process.environ().get("HOME") == str(home) and "--token-file" in process.cmdline()
    except psutil.Error:
        return False

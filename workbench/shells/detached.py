"""The servers of a project as a process of their own, which goes on when the kernel or terminal that started it ends.

It is `workbench serve` in a session of its own, with its output in `.aiswarm/logs/serve.log`. `server.json` names it as
any other server; what tells it from one in a terminal is its command line.

Commands import this module to tell where a server is, so it imports the servers only where it starts them itself.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from workbench.client.discovery import find_server
from workbench.errors import Conflict, Unavailable
from workbench.model import ServerInfo
from workbench.process import is_running
from workbench.state.server_file import SERVER_LOG, ServerFile
from workbench.state.settings import Settings
from workbench.trust import state_directory

FLAG = "--detached"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.05
OF_THE_STARTER = ("WORKBENCH_RUN", "WORKBENCH_SESSION", "WORKBENCH_TOKEN")
"""Variables that are about the process that starts it, not about the project."""
_IN_THE_BACKGROUND = '"$@" </dev/null >>"$0" 2>&1 & echo $!'


@dataclass(frozen=True)
class Started:
    """The server that runs. `is_new`: it was started now."""

    info: ServerInfo
    is_new: bool


def start(settings: Settings, port: int | None = None, *, end_workers: bool = False) -> Started:
    """Start the servers in a process of their own, unless some run. Blocks; not for a thread with an event loop.

    Args:
        port, end_workers: see `headless.run`.

    Raises:
        Unavailable: ``SERVER_NOT_STARTED``. Other errors: see `state_directory.create`.
    """
    state_directory.create(settings)
    if (running := asyncio.run(find_server(settings.server_file))) is not None:
        return Started(running.info, False)
    log = settings.logs / SERVER_LOG
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    pid = _spawn(settings.project, log, port, end_workers)
    started = None
    try:
        started = _read_announcement(settings, pid)
    finally:
        if started is None:  # also after an interrupt: what was not announced does not go on
            _terminate(pid)
    if started is None:
        raise Unavailable("SERVER_NOT_STARTED", f"The server did not start: {_last_line(log)} See {log}.")
    return started


def stop(settings: Settings, *, end_workers: bool = False) -> ServerInfo | None:
    """End the servers that `start` started, and wait for their end; None: no server runs. Blocks.

    If kernels still use the project, one of them serves it from now on.

    Args:
        end_workers: also end the agents' processes; otherwise they go on, and the next start takes them back.

    Raises:
        Conflict: ``NOT_DETACHED``. Unavailable: ``STILL_STOPPING``. Refused: see `state_directory.check`.
    """
    state_directory.check(settings.project)
    info = ServerFile(settings.server_file).load().info
    if info is None:
        return None
    if not is_detached(info):
        raise Conflict(
            "NOT_DETACHED",
            f"Process {info.pid}, a notebook or a terminal, serves this project. Stop it there, with `%workbench stop` "
            f"or Ctrl-C. If its notebook or terminal is gone, `kill {info.pid}` ends it.",
        )
    _terminate(info.pid)
    if not _until(lambda: not _runs(info.pid), STOP_SECONDS):
        raise Unavailable(
            "STILL_STOPPING",
            f"The server (process {info.pid}) still runs after {STOP_SECONDS:.0f} s. {settings.logs / SERVER_LOG} may "
            "say what it waits for.",
        )
    if end_workers:
        asyncio.run(_end_workers(settings))
    return info


def said(settings: Settings, started: Started) -> str:
    """What a start answers: where the server is, and how it ends."""
    info = started.info
    if started.is_new or is_detached(info):
        sentence = f"Process {info.pid} serves {settings.project.name} at {info.url}, and goes on without this one"
        return f"{sentence}. `workbench stop` ends it; its log is {settings.logs / SERVER_LOG}."
    return (
        f"Process {info.pid} already serves {settings.project.name} at {info.url}. To detach it, stop it there first."
    )


def is_detached(info: ServerInfo) -> bool:
    """Whether a server was started by `start`."""
    try:
        return FLAG in psutil.Process(info.pid).cmdline()
    except psutil.Error:
        return False


def _spawn(project: Path, log: Path, port: int | None, end_workers: bool) -> int:
    """Start the process, which is no child of this one; its pid."""
    argv = [sys.executable, "-P", "-m", "workbench.cli", "serve", "--project", str(project), FLAG]
    argv += [*([] if port is None else ["--port", str(port)]), *(["--end-workers"] if end_workers else [])]
    env = {name: value for name, value in os.environ.items() if name not in OF_THE_STARTER}
    shell = ["/bin/sh", "-c", _IN_THE_BACKGROUND, str(log), *argv]
    ran = subprocess.run(
        shell,
        cwd=project,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        check=True,
    )
    return int(ran.stdout)


def _read_announcement(settings: Settings, pid: int) -> Started | None:
    """The server that answers; None if the process has ended before, or does not answer in time."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if (running := asyncio.run(find_server(settings.server_file))) is not None:
            return Started(running.info, running.info.pid == pid)
        if not _runs(pid):
            break
        time.sleep(POLL_SECONDS)
    return None


async def _end_workers(settings: Settings) -> None:
    """End the agents' processes that a server left, unless another one serves the project."""
    from workbench.app import Workbench
    from workbench.shells.serve import Servers

    async with Workbench.open(settings) as workbench, Servers(workbench, end_workers=True) as servers:
        try:
            await servers.start(0)
        except Conflict as error:
            if error.code != "ALREADY_SERVED":
                raise


def _terminate(pid: int) -> None:
    with suppress(psutil.NoSuchProcess):  # it has just ended by itself
        psutil.Process(pid).terminate()


def _runs(pid: int) -> bool:
    try:
        return is_running(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def _until(reached: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _last_line(log: Path) -> str:
    """What the process said last."""
    try:
        lines = [line for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return lines[-1] if lines else ""

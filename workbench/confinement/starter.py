"""Starts boxed commands by way of a fork server, which is several times as fast as starting each alone.

Each command has a box of its own, as if it had been started alone. Only this process has the other end of the socket
by which the fork server is told what to do.
"""

from __future__ import annotations

import marshal
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from workbench.confinement import compiled
from workbench.system import uninterrupted

CONFIRM_SECONDS = 10.0
"""How long a request may be unanswered; then the command is started in the usual way."""
_END_SECONDS = 10.0
"""Longer than a guard takes to kill all that a command started."""
_KILLED = -9


@dataclass(slots=True)
class StartedCommand:
    """A command that another process started: as much of `subprocess.Popen` as its caller needs."""

    args: Sequence[str]
    stdout: BinaryIO
    stderr: BinaryIO
    control: socket.socket
    returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; its exit code, or minus the number of a signal.

        Raises:
            subprocess.TimeoutExpired: it has not ended.
        """
        if self.returncode is None:
            self.control.settimeout(timeout)
            try:
                status = self.control.recv(4)
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from None
            except OSError:
                status = b""
            self.returncode = int.from_bytes(status, sys.byteorder, signed=True) if status else _KILLED
        return self.returncode

    def stop(self) -> None:
        """End it with its descendants, giving it time to remove its lock files."""
        with suppress(OSError, subprocess.TimeoutExpired):
            self.control.shutdown(socket.SHUT_WR)
            self.wait(_END_SECONDS)


class Starter:
    """Starts boxed commands, from any thread, until it is closed; its fork server when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._is_closed = not hasattr(os, "pidfd_open")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the fork server, and what that has started."""
        with self._lock:
            self._is_closed = True
            self._end()

    def _end(self) -> None:
        if self._process is not None and self._requests is not None:
            self._process.kill()  # not by closing the socket, of which a fork of this process may have a copy
            self._process.wait()
            self._requests.close()
            self._process = self._requests = None

    @contextmanager
    def started(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: BinaryIO
    ) -> Iterator[StartedCommand | subprocess.Popen[bytes]]:
        """Start what `Box.guarded` made of a command, with pipes for its output. It has ended when the block ends.

        Raises:
            OSError: it cannot be started.
        """
        launcher = compiled.launcher()
        with ExitStack() as opened:
            command = None
            if list(argv[: len(launcher)]) == launcher:
                request = marshal.dumps((str(cwd), dict(env), list(argv[len(launcher) :])))
                command = self._start(opened, argv, request, stdin)
            if command is None:
                pipe = subprocess.PIPE
                yield opened.enter_context(
                    uninterrupted.started(argv, cwd=cwd, env=env, stdin=stdin, stdout=pipe, stderr=pipe)
                )
                return
            try:
                yield command
                command.wait()
            except BaseException:
                command.stop()
                raise

    def _start(self, opened: ExitStack, argv: Sequence[str], request: bytes, stdin: BinaryIO) -> StartedCommand | None:
        """Have the fork server start a command; None if it does not."""
        control, theirs = map(opened.enter_context, socket.socketpair())
        (out, out_end), (err, err_end) = _pipe(opened), _pipe(opened)
        files = [theirs.fileno(), stdin.fileno(), out_end.fileno(), err_end.fileno()]
        try:
            with self._lock:
                if (requests := self._open()) is None:
                    return None
                socket.send_fds(requests, [b"."], files)
            theirs.close()
            out_end.close()
            err_end.close()
            control.settimeout(CONFIRM_SECONDS)
            if not control.recv(1):
                return None
            control.settimeout(None)
            control.sendall(request)
        except OSError:
            return None
        return StartedCommand(argv, out, err, control)

    def _open(self) -> socket.socket | None:
        """The socket of the fork server, which is started unless it runs; None after `close`."""
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._requests is None and not self._is_closed:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs, uninterrupted.sigint_blocked():
                try:
                    self._process = subprocess.Popen(
                        [*compiled.fork_server(), str(theirs.fileno())],
                        cwd="/",
                        env={},
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        pass_fds=[theirs.fileno()],
                        start_new_session=True,
                    )
                except OSError:
                    ours.close()
                    raise
            self._requests = ours
        return self._requests


def _pipe(opened: ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """A pipe: its end to read from, and that to write to."""
    reader, writer = os.pipe()
    return opened.enter_context(os.fdopen(reader, "rb", 0)), opened.enter_context(os.fdopen(writer, "wb", 0))

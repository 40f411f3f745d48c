"""Runs a program of a box in the person's terminal, whose paths are told as they are outside; see `Translation`.

What is not shown in a terminal, such as an archive that is written to a file, stays as it is. Between the program and
the terminal stands another terminal, so that the program sees one, with its size and its keys.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from workbench.confinement.told import Stream, Translation

IDLE_SECONDS = 0.05
"""After how long what may be the beginning of a path is shown, such as a prompt that ends with a slash."""
_CHUNK = 1 << 16
_OWN_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
os.execv(sys.argv[2], sys.argv[2:])
"""


def run(
    argv: Sequence[str], translation: Translation, cwd: Path, environment: Mapping[str, str], files: Sequence[int]
) -> int:
    """Run a program to its end; its status, negative if a signal ended it.

    Args:
        files: open files that it needs, besides the usual three.
    """
    shown = [stream.fileno() for stream in (sys.stdout, sys.stderr) if stream.isatty()]
    if not shown or translation.is_idle:
        with subprocess.Popen(argv, cwd=cwd, env=environment, pass_fds=files) as process:
            return _wait(process)
    terminal, slave = pty.openpty()
    keys = [sys.stdin.fileno()] if sys.stdin.isatty() else []
    with os.fdopen(terminal, "r+b", 0), _following(shown[0], terminal), _raw(keys):
        with os.fdopen(slave, "r+b", 0):
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _OWN_TERMINAL, str(slave), *argv],
                cwd=cwd,
                env=environment,
                pass_fds=(*files, slave),
                stdin=slave if keys else None,
                stdout=slave if sys.stdout.isatty() else None,
                stderr=slave if sys.stderr.isatty() else None,
            )
        with process:
            _copy(process, terminal, keys, shown[0], Stream(translation))
            return _wait(process)


def _copy(process: subprocess.Popen[bytes], terminal: int, keys: list[int], shown: int, stream: Stream) -> None:
    """Pass on keys and output until the program and all that it started have closed their terminal."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    while True:
        try:
            ready, _, _ = select.select([terminal, *keys], [], [], IDLE_SECONDS if stream.is_waiting else None)
        except KeyboardInterrupt:  # without keys here, an interrupt does not reach the other terminal
            process.send_signal(signal.SIGINT)
            continue
        if not ready:
            _write(shown, stream.flush())
        if terminal in ready:
            if not (output := _read(terminal)):
                break
            _write(shown, stream.add(decoder.decode(output)))
        for key in keys:
            if key in ready and (typed := _read(key)):
                os.write(terminal, typed)
            elif key in ready:
                keys = []
    _write(shown, stream.add(decoder.decode(b"", final=True)) + stream.flush())


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait until a command has ended. The command itself handles an interrupt from the terminal."""
    while True:
        with suppress(KeyboardInterrupt):
            return process.wait()


def _read(file: int) -> bytes:
    with suppress(OSError):  # of a terminal that nobody has open any more
        return os.read(file, _CHUNK)
    return b""


def _write(file: int, text: str) -> None:
    rest = text.encode("utf-8", "surrogateescape")
    while rest:
        rest = rest[os.write(file, rest) :]


@contextmanager
def _following(shown: int, terminal: int) -> Iterator[None]:
    """Give one terminal the size of another, also when that changes."""

    def follow(*_: object) -> None:
        with suppress(OSError):
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, fcntl.ioctl(shown, termios.TIOCGWINSZ, bytes(8)))

    follow()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGWINCH, follow)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


@contextmanager
def _raw(keys: list[int]) -> Iterator[None]:
    """Pass on keys as they are typed."""
    before = [(key, termios.tcgetattr(key)) for key in keys]
    try:
        for key in keys:
            tty.setraw(key)
        yield
    finally:
        for key, attributes in before:
            termios.tcsetattr(key, termios.TCSADRAIN, attributes)

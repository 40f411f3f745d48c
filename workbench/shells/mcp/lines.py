"""Standard input and output as lines of JSON."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

CHUNK = 65_536


async def lines() -> AsyncIterator[bytes]:
    """The lines of standard input until it ends; empty ones are left out.

    They are read in a thread, because standard input may be a file; it reads the descriptor itself, because a thread
    that waits in `sys.stdin` stops the interpreter from ending.
    """
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()

    def read() -> None:
        rest = b""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
            while chunk := _chunk():
                *complete, rest = (rest + chunk).split(b"\n")
                for line in complete:
                    loop.call_soon_threadsafe(queue.put_nowait, line)
            for end in (rest, None):
                loop.call_soon_threadsafe(queue.put_nowait, end)

    threading.Thread(target=read, daemon=True, name="stdin").start()
    while (line := await queue.get()) is not None:
        if line.strip():
            yield line


def _chunk() -> bytes:
    """What comes next on standard input; nothing at its end, and if it is closed or cannot be read."""
    if sys.stdin is None:  # the process was started without one
        return b""
    try:
        return os.read(sys.stdin.fileno(), CHUNK)
    except OSError:  # such as when its terminal has gone
        return b""


class LineOutput:
    """Writes one message a line to standard output."""

    def __init__(self) -> None:
        self._writing = asyncio.Lock()

    async def write(self, message: Any) -> None:
        """Write a message, all of it before the next. Waits, without stopping others, until it is read.

        A client that has gone needs no message: its end of standard input ends the process.
        """
        line = json.dumps(message, ensure_ascii=False).encode() + b"\n"
        async with self._writing:
            await asyncio.to_thread(_write, line)


def _write(line: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        while line:
            line = line[os.write(sys.stdout.fileno(), line) :]

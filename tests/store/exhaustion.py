"""A process that can open nothing more, and a store whose reading threads are busy."""

from __future__ import annotations

import asyncio
import os
import resource
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from workbench.store.base import Store


@asynccontextmanager
async def reader_busy(store: Store) -> AsyncIterator[None]:
    """One reading thread has a long question to answer."""
    asked, gate = threading.Event(), threading.Event()

    def wait(tx: Any) -> None:
        asked.set()
        gate.wait()

    asking = asyncio.create_task(store.read(wait))
    await asyncio.to_thread(asked.wait)
    try:
        yield
    finally:
        gate.set()
        await asking


@contextmanager
def no_descriptors() -> Iterator[None]:
    """The process can open nothing."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = []
    try:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (max(int(fd.name) for fd in Path("/proc/self/fd").iterdir()) + 1, limits[1])
        )
        with suppress(OSError):
            while True:
                used.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for descriptor in used:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

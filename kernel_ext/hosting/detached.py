"""A notebook's part in servers that run in a process of their own: `%workbench start --detach`, and their end."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from workbench.state import shares

if TYPE_CHECKING:
    from kernel_ext.hosting.host import KernelHost
    from workbench.state.settings import Settings

T = TypeVar("T")


def start(settings: Settings, port: int | None, *, end_workers: bool) -> str:
    """Start a project's servers in a process of their own, unless some run. Returns a sentence about it.

    Raises:
        Unavailable: ``SERVER_NOT_STARTED``. Other errors: see `detached.start`.
    """
    from workbench.shells import detached

    return detached.said(settings, in_thread(lambda: detached.start(settings, port, end_workers=end_workers)))


def used_only_by(host: KernelHost) -> bool:
    """Whether a detached server serves a project that no process but this kernel uses."""
    from workbench.shells.detached import is_detached

    info = host.info
    if info is None or not host.attached or not is_detached(info):
        return False
    return not {*shares.holders(host.settings.shares)} - {info.pid, os.getpid()}


def end(settings: Settings, departure: shares.Departure, *, end_workers: bool) -> shares.Departure:
    """End a detached server that nobody uses any more. Returns the departure with what it ended.

    Raises:
        Unavailable: ``STILL_STOPPING``. Conflict: ``NOT_DETACHED``: another process serves the project meanwhile.
    """
    from workbench.shells import detached

    in_thread(lambda: detached.stop(settings, end_workers=end_workers))
    return replace(departure, others=(), end_workers=end_workers)


def in_thread(work: Callable[[], T]) -> T:
    """Do something that runs an event loop of its own: the kernel's own thread has one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()

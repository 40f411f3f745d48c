"""The sockets of kernels: no other program takes them, no other user reaches them, and none drops outputs.

With TCP, jupyter_client's default, ports are chosen before the kernel takes them, and a program that takes one in
between keeps the kernel from starting. And ZeroMQ silently drops messages for a reader that is 1,000 behind.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import zmq
from traitlets.config import Config

if TYPE_CHECKING:
    from jupyter_client.asynchronous.client import AsyncKernelClient
    from jupyter_client.manager import KernelManager

_PREFIX = "workbench-kernel-"
_NAME = "kernel"
_NUMBER = 5
"""Sockets of a kernel; their names end with ``-1`` and so on."""
_KEEP_OUTPUTS = """
def keep_outputs(thread):
    import zmq
    thread.schedule(lambda: thread.socket.setsockopt(zmq.SNDHWM, 0))
keep_outputs(get_ipython().kernel.iopub_thread)
del keep_outputs
"""


@contextmanager
def directory() -> Iterator[Path | None]:
    """A new private directory for the sockets of one kernel; None if this system has no fit place for it.

    It is locked while its process lives, so that other processes recognise a directory that was left.
    """
    with ExitStack() as stack:
        yield _new_directory(stack)


def remove_left() -> None:
    """Remove the directories of processes that were killed."""
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError), _lock(place) as is_left:
            if is_left:
                shutil.rmtree(place, ignore_errors=True)


def _new_directory(stack: ExitStack) -> Path | None:
    try:
        place = Path(tempfile.mkdtemp(prefix=_PREFIX))
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        is_locked = stack.enter_context(_lock(place))
    except OSError:
        return None
    return place if is_locked and place.exists() and _is_fit(place) else None


@contextmanager
def _lock(place: Path) -> Iterator[bool]:
    """Lock a directory of this user that is no link; yields False if another process holds it.

    Raises:
        OSError: it is gone, a link, or somebody else's.
    """
    directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(directory).st_uid != os.getuid():
            raise PermissionError(place)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(directory)


def listen_in(place: Path | None, manager: KernelManager) -> None:
    """Let a kernel that is about to be started listen in a directory.

    This is for ipykernel only. Others keep TCP: some form the addresses in their own way and would never answer.
    """
    if place is not None and is_ipykernel(manager):
        manager.update_config(config(place))


def config(place: Path | None) -> Config:
    """The configuration of Jupyter with which an ipykernel listens in a directory."""
    options = {} if place is None else {"transport": "ipc", "ip": str(place / _NAME)}
    return Config(KernelManager=options)


def keep_outputs(manager: KernelManager, client: AsyncKernelClient) -> str:
    """Have a kernel keep all outputs until they are read; the id of a request that it will answer."""
    client.iopub_channel.socket.setsockopt(zmq.RCVHWM, 0)
    if is_ipykernel(manager):
        return str(client.execute(_KEEP_OUTPUTS, silent=True, store_history=False))
    return str(client.kernel_info())


def is_ipykernel(manager: KernelManager) -> bool:
    """Whether a kernel is ipykernel's, and so runs Python."""
    return manager.kernel_spec is not None and any("ipykernel" in part for part in manager.kernel_spec.argv)


def _is_fit(place: Path) -> bool:
    """Whether the paths of sockets in a directory are short enough: about 107 bytes."""
    path = f"{place / _NAME}-{_NUMBER}".encode()
    return bool(zmq.has("ipc")) and len(path) <= zmq.IPC_PATH_MAX_LEN

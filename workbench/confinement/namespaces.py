"""Namespaces of Linux, which give a command files, shared memory and a network of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

from workbench.confinement import compiled
from workbench.state import user_files

MOUNT, IPC, NETWORK = 0x0002_0000, 0x0800_0000, 0x4000_0000
"""``CLONE_NEW…`` of Linux."""

ALL = frozenset({"mount", "ipc", "net"})
_SECONDS = 20.0
"""How long the trial may take on a busy machine."""


def flags(names: frozenset[str], *, network: bool) -> int:
    """What ``unshare`` takes for these namespaces; `network`: the one of the network, too."""
    return (MOUNT if "mount" in names else 0) | (IPC if "ipc" in names else 0) | (NETWORK if network else 0)


@cache
def available() -> frozenset[str]:
    """The namespaces that this system allows its user: all of them, or none.

    It is tried, once, in a process of its own: systems refuse any of the steps, by the kernel's settings, a filter of
    system calls, or a security module.
    """
    if sys.platform != "linux":
        return frozenset()
    with ExitStack() as stack:
        place = _new_directory(stack)
        if place is None:
            return frozenset()
        worktree, project = place / "worktree", place / "project"
        for path in (worktree, project, place / "other"):
            path.mkdir()
        orders = [
            f"unshare={flags(ALL, network=True):x}",
            "shm=4096",
            *(f"mount=w:{len(str(worktree))}:{worktree}:{at}" for at in (project, worktree)),
            f"mount=:{len(str(place / 'other'))}:{place / 'other'}:{project / 'a' / 'mount point'}",
            f"hide={place / 'other'}",
        ]
        script = 'echo > "$1/made" && ! echo 2> /dev/null > "$2/made"'
        command = ("/bin/sh", "-c", script, "sh", str(project), str(place))
        try:
            tried = subprocess.run(
                [*compiled.launcher(), *orders, "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired):
            return frozenset()
        return ALL if tried.returncode == 0 and (worktree / "made").exists() else frozenset()


def _new_directory(stack: ExitStack) -> Path | None:
    """A new directory which a box does not have its own in place of; None if none can be made."""
    for parent in (os.environ.get("TMPDIR") or "/tmp", "/tmp", "/var/tmp", user_files.directory()):
        place = Path(os.path.realpath(parent))
        if not place.is_relative_to("/dev/shm"):
            with suppress(OSError):
                return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-", dir=place)))
    return None

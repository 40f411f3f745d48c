"""Namespaces of Linux, which give a command files, shared memory and a network of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from workbench.confinement import compiled

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
    with tempfile.TemporaryDirectory(prefix="workbench-") as directory:
        place = Path(directory).resolve()
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
        script = f"echo > '{project}/made' && ! echo 2> /dev/null > '{place}/made'"
        try:
            tried = subprocess.run(
                [*compiled.launcher(), *orders, "--", "/bin/sh", "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired):
            return frozenset()
        return ALL if tried.returncode == 0 and (worktree / "made").exists() else frozenset()

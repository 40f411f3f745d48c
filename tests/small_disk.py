"""A file system of a few megabytes, to be filled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """A file system of so many megabytes at `place`; skips the test if the system does not let us mount one."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path, but: int) -> None:
    """Leave so many bytes free, by a file `filler`."""
    free = os.statvfs(place)
    (place / "filler").write_bytes(b"\1" * max(free.f_bavail * free.f_frsize - but, 0))

"""How long a disk takes to keep what it is given, and disks that take longer.

What a queue that commits each task by itself can do is decided by the disk's `fsync`, and so is how it
compares with one that commits many at once. That time is 0.05 ms where a cache stands in between, and 0.5
to 2 ms on the solid-state disks of most people; so such a comparison is made at a given time.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

SOURCE = Path(__file__).with_name("slow_fsync.c")


def fsync_seconds(directory: Path, times: int = 200) -> float:
    """How long `fdatasync` takes there after a page is appended, the median."""
    with (directory / "fsync").open("wb", buffering=0) as file:
        return statistics.median([_append(file.fileno()) for _ in range(times)])


def _append(file: int) -> float:
    os.write(file, bytes(4096))
    started = time.perf_counter()
    os.fdatasync(file)
    return time.perf_counter() - started


def slowed(directory: Path, seconds: float) -> dict[str, str] | None:
    """Environment of a process whose `fsync` takes at least so long; None where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = directory / "slow_fsync.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, SOURCE, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "SLOW_FSYNC_MICROSECONDS": f"{seconds * 1e6:.0f}"}

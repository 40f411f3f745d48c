"""What a machine has that tasks can need, by its settings and by what is found, and how a command gets it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workbench.confinement import gpus
from workbench.confinement.gpus import Gpu
from workbench.errors import BadInput, Conflict
from workbench.model import Wire
from workbench.rules.needs import CPU, GPU, MEMORY, StatedGpu, StatedResources, stated_resources
from workbench.state.settings import Settings

THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    *("NUMBA_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS", "JULIA_NUM_THREADS", "GOMAXPROCS"),
)
"""The variables that say how many threads a library starts."""
NOT_FOUND = "there is no such device on this machine"


class Lent(Wire):
    """What the commands of an attempt get of what it holds: device files, files that their driver reads, variables, and
    how much memory they may use; null: as much as without a lease.

    `locks`: files, one of each GPU, which a supervisor holds while something of the attempt runs.
    """

    devices: list[str] = []
    read: list[str] = []
    locks: list[str] = []
    variables: dict[str, str] = {}
    memory_bytes: int | None = None


def stated(settings: Settings) -> StatedResources:
    """What the settings say.

    Raises:
        BadInput: ``BAD_SETTINGS``.
    """
    try:
        return stated_resources(settings.resources)
    except ValueError as error:
        raise BadInput("BAD_SETTINGS", f"The setting resources: {error}. Correct it.") from None


def rows(settings: Settings) -> Iterator[dict[str, Any]]:
    """What there is on this machine, ordered by name and device. Blocks.

    Raises:
        BadInput: ``BAD_SETTINGS``.
    """
    said = stated(settings)
    amounts = {CPU: _processors(), MEMORY: _memory(), **said.amounts}
    found = [{"name": name, "device": "", "amount": n, "vram": None, "problem": None} for name, n in amounts.items()]
    for one, gpu, problem in _gpus(said):
        name = gpu.name if gpu else one.name
        found.append({"name": GPU, "device": name, "amount": 1, "vram": one.vram or said.vram, "problem": problem})
    yield from sorted(
        {(row["name"], row["device"]): row for row in found}.values(), key=lambda row: (row["name"], row["device"])
    )


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> int:
    """That of the machine, or of the container in which this runs."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no such file, or the word "max": no limit
        there = min(there, int(Path("/sys/fs/cgroup/memory.max").read_text("utf-8")))
    return there


def _gpus(said: StatedResources) -> Iterator[tuple[StatedGpu, Gpu | None, str | None]]:
    """The GPUs that are lent, each with what is wrong with it. Blocks."""
    if said.gpus == ():
        return
    found = gpus.find()
    if said.gpus is None:
        yield from ((StatedGpu(gpu.name), gpu, None) for gpu in found)
        return
    for one in said.gpus:
        if one.devices:
            gpu = gpus.stated(one.name, one.devices)
            missing = next((path for path in gpu.devices if not path.exists()), None)
            yield one, gpu, f"{missing} is not there" if missing else None
        else:
            gpu_of_it = _named(found, one.name)
            yield one, gpu_of_it, None if gpu_of_it else NOT_FOUND


def _named(found: Sequence[Gpu], name: str) -> Gpu | None:
    """The GPU of a name, such as ``nvidia0``, or of a number."""
    by_name = {gpu.name: gpu for gpu in found}
    by_number = dict(zip(map(str, range(len(found))), found, strict=True))
    return by_name.get(name) or by_name.get(f"nvidia{name}") or by_number.get(name)


def lent(settings: Settings, leased: Mapping[str, Any] | None, locks: Path | None = None) -> Lent:
    """What the commands of an attempt get. Blocks.

    Args:
        leased: what it holds, as it is recorded; None: nothing.
        locks: the directory of the locks of devices; None: that of the project.

    Raises:
        Conflict: ``DEVICE_GONE``: a device is there no more.
    """
    said, leased = stated(settings), leased or {}
    names, amounts = leased.get("devices", []), leased.get("amounts", {})
    variables = dict.fromkeys(THREADS, str(amounts[CPU])) if CPU in amounts else {}
    memory = amounts.get(MEMORY)
    if not names:
        hidden = {} if said.gpus == () else dict(gpus.NOTHING_VISIBLE)
        return Lent(variables=hidden | variables, memory_bytes=memory)
    held = [gpu for _, gpu, problem in _gpus(said) if gpu and not problem and gpu.name in names]
    if gone := sorted({*names} - {gpu.name for gpu in held}):
        raise Conflict("DEVICE_GONE", f"The GPU {', '.join(gone)} is there no more: `workbench resources` says why.")
    return Lent(
        devices=[str(path) for path in dict.fromkeys(path for gpu in held for path in gpu.devices)],
        read=[str(path) for path in dict.fromkeys(path for gpu in held for path in gpu.read)],
        locks=[str((locks or settings.devices) / f"{quote(name, safe='')}.lock") for name in names],
        variables=gpus.variables_of(held) | variables,
        memory_bytes=memory,
    )

"""The GPUs of a machine, which a box may have: their device files, what their driver reads, and their variables.

Device files are looked for, never opened. A box has no others, so a program that finds none cannot take a
neighbour's; without any, the box is refused, because a program would quietly compute on the processor.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from workbench.errors import Unavailable

_OF_ALL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_READ = ("proc/driver/nvidia", "sys/devices", "sys/module/nvidia", "sys/class/drm", "sys/class/kfd", "proc/devices")
_MINOR = re.compile(r"^Device Minor:\s*(\d+)\s*$", re.MULTILINE)
_IDENTITY = re.compile(r"^GPU UUID:\s*(\S+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU.

    Args:
        name: names it among the machine's, such as ``nvidia0`` or ``renderD128``.
        devices: the device files that its user opens.
        read: what its driver reads about it.
        variables: by which programs choose it.
    """

    name: str
    devices: tuple[Path, ...]
    read: tuple[Path, ...]
    variables: tuple[tuple[str, str], ...]


def find(root: Path = Path("/")) -> list[Gpu]:
    """The GPUs of this machine, by their numbers. Blocks.

    Args:
        root: where its ``dev``, ``proc`` and ``sys`` are.
    """
    read = tuple(path for name in _READ if (path := root / name).exists())
    return [*_of_nvidia(root, read), *_of_amd(root, read)]


def choose(gpus: Collection[Gpu], taken: Collection[str]) -> Gpu:
    """The first GPU that no other agent has.

    Raises:
        Unavailable: ``GPU_UNAVAILABLE``.
    """
    if not gpus:
        raise Unavailable(
            "GPU_UNAVAILABLE",
            "This machine has no GPU: there is neither /dev/nvidia0 nor /dev/kfd. Its driver may not be loaded. "
            "Without gpu = 1 in the workplace, commands run on the processor.",
        )
    if free := next((gpu for gpu in gpus if gpu.name not in taken), None):
        return free
    raise Unavailable(
        "GPU_UNAVAILABLE",
        f"Each of the {len(gpus)} GPUs of this machine belongs to a running agent. End one, or wait until one ends.",
        taken=sorted(taken),
    )


def stated(name: str, devices: Collection[str]) -> Gpu:
    """A device that is not found by itself, with the files that are said to be its own."""
    names = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
    return Gpu(name, tuple(map(Path, devices)), (), tuple((variable, name) for variable in names))


NOTHING_VISIBLE: Mapping[str, str] = MappingProxyType(
    {
        "CUDA_VISIBLE_DEVICES": "",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "ROCR_VISIBLE_DEVICES": "",
        "HIP_VISIBLE_DEVICES": "",
    }
)
"""The variables of a command that is to see no GPU."""


def variables_of(gpus: Sequence[Gpu]) -> dict[str, str]:
    """The variables with which a program sees these GPUs, and no others."""
    values: dict[str, dict[str, None]] = {}
    for gpu in gpus:
        for name, value in gpu.variables:
            values.setdefault(name, {})[value] = None
    variables = {name: ",".join(several) for name, several in values.items()}
    if several := values.get("ROCR_VISIBLE_DEVICES"):
        # ROCr leaves out those whose node cannot be opened, and HIP counts what remains.
        variables["HIP_VISIBLE_DEVICES"] = ",".join(map(str, range(len(several))))
    return variables


def _of_nvidia(root: Path, read: tuple[Path, ...]) -> Iterator[Gpu]:
    identities = dict(_identities(root))
    common = tuple(path for name in _OF_ALL if (path := root / "dev" / name).exists())
    caps = root / "dev" / "nvidia-caps"
    parts = tuple(sorted(caps.glob("nvidia-cap*"))) if caps.is_dir() else ()
    numbers = (int(path.name[6:]) for path in (root / "dev").glob("nvidia[0-9]*") if path.name[6:].isdigit())
    for number in sorted(numbers):
        name = f"nvidia{number}"
        # By its identity: its number among the visible ones is another one when the others cannot be opened.
        identity = identities.get(number, str(number))
        variables = (("CUDA_VISIBLE_DEVICES", identity), ("NVIDIA_VISIBLE_DEVICES", identity))
        yield Gpu(name, (root / "dev" / name, *common, *parts), read, (*variables, ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")))


def _identities(root: Path) -> Iterator[tuple[int, str]]:
    for file in (root / "proc/driver/nvidia/gpus").glob("*/information"):
        try:
            text = file.read_text("utf-8", "replace")
        except OSError:
            continue
        minor, identity = _MINOR.search(text), _IDENTITY.search(text)
        if minor and identity and "?" not in identity[1]:
            yield int(minor[1]), identity[1]


def _of_amd(root: Path, read: tuple[Path, ...]) -> Iterator[Gpu]:
    kernel = root / "dev" / "kfd"
    if not kernel.exists():
        return
    nodes = sorted((root / "dev" / "dri").glob("renderD*"), key=lambda path: int(path.name[7:]))
    for number, node in enumerate(nodes):
        yield Gpu(node.name, (kernel, node), read, (("ROCR_VISIBLE_DEVICES", str(number)),))

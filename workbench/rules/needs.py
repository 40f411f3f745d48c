"""What a task needs while it is done, against what a project has: GPUs, processors, memory, licences, and others.

Needs are a mapping, ``{gpu: 1, vram: 12G, exclusive: true, cpu: 4, memory: 8G, license: {matlab: 1}}``, or the same as
a text, ``gpu=1, vram=12G, exclusive, license=matlab``. Any other name is a resource that the settings name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from workbench.rules import workplace

GPU, CPU, MEMORY = "gpu", "cpu", "memory"
LICENSE = "license"
ALONE = "alone"
"""The name of the lease of an exclusive task, of which there is one."""
MOST = {GPU: 64, CPU: 4_096}
MOST_OF_OTHERS = 10_000
MOST_BYTES = 1 << 44
MOST_NAMES = 20
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
_KEYS = "gpu, vram, exclusive, cpu, memory, license, or a resource of the settings"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a task needs.

    Args:
        gpu: how many GPUs, which it has alone.
        vram: the memory that each of them has at least, in bytes.
        exclusive: nothing else is done on the machine meanwhile.
        amounts: of everything else, by name; memory in bytes, licences as ``license:NAME``.
    """

    gpu: int = 0
    vram: int = 0
    exclusive: bool = False
    amounts: Mapping[str, int] = field(default_factory=dict)

    def competes(self, other: Needs) -> bool:
        """Whether both want some of the same."""
        both = self.amounts.keys() & other.amounts.keys()
        return self.exclusive or other.exclusive or bool(both) or bool(self.gpu and other.gpu)


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU of a project; `vram` in bytes, None: it is not known."""

    name: str
    vram: int | None


@dataclass(frozen=True, slots=True)
class Stock:
    """What a project has and lends, and what of it is held.

    Args:
        devices: its GPUs.
        amounts: how much there is of everything else, by name.
        taken: the GPUs that are held.
        held: how much of everything else is held.
        running: how many attempts are under way.
    """

    devices: Sequence[Device] = ()
    amounts: Mapping[str, int] = field(default_factory=dict)
    taken: Collection[str] = ()
    held: Mapping[str, int] = field(default_factory=dict)
    running: int = 0

    def missing(self, needs: Needs) -> list[str]:
        """What of the needs is never there, whoever holds it, in words."""
        fitting = [one for one in self.devices if _fits(one, needs)]
        found = [_of_gpus(needs, len(fitting), self.devices, "there")] if len(fitting) < needs.gpu else []
        short = [(name, n) for name, n in needs.amounts.items() if self.amounts.get(name, 0) < n]
        there = {name: amount_of(name, self.amounts.get(name, 0)) for name, _ in short}
        return found + [f"{in_words(name, n)} ({there[name]} there)" for name, n in short]

    def lacking(self, needs: Needs) -> list[str]:
        """What of the needs is not free now, in words; empty: they can be met."""
        if absent := self.missing(needs):
            return absent
        found = []
        free = [one for one in self.devices if _fits(one, needs) and one.name not in self.taken]
        if len(free) < needs.gpu:
            found.append(_of_gpus(needs, len(free), self.devices, "free"))
        for name, wanted in needs.amounts.items():
            there = self.amounts[name]
            left = max(there - self.held.get(name, 0), 0)
            if left < wanted:
                found.append(f"{in_words(name, wanted)} ({amount_of(name, left)} of {amount_of(name, there)} free)")
        if needs.exclusive and self.running:
            attempts = "1 attempt" if self.running == 1 else f"{self.running} attempts"
            found.append(f"the machine alone ({attempts} under way)")
        return found

    def is_short_of(self, name: str, needs: Needs) -> bool:
        """Whether something of a name is needed, and less of it is free."""
        one = Needs(needs.gpu, needs.vram) if name == GPU else Needs(amounts={name: needs.amounts.get(name, 0)})
        alone = name == ALONE and needs.exclusive and self.running > 0
        return alone or (one != Needs(amounts={name: 0}) and bool(self.lacking(one)))

    def choose(self, needs: Needs) -> list[str]:
        """The GPUs that meet the needs, which can be met: those with the least memory that is enough."""
        free = [one for one in self.devices if _fits(one, needs) and one.name not in self.taken]
        return [one.name for one in sorted(free, key=lambda one: one.vram or 0)[: needs.gpu]]


def _fits(device: Device, needs: Needs) -> bool:
    return not needs.vram or (device.vram is not None and device.vram >= needs.vram)


def _of_gpus(needs: Needs, n: int, devices: Sequence[Device], what: str) -> str:
    wanted = "a GPU" if needs.gpu == 1 else f"{needs.gpu} GPUs"
    wanted += f" with {_size(needs.vram)}" if needs.vram else ""
    unknown = sum(device.vram is None for device in devices) if needs.vram else 0
    note = f"; the memory of {unknown} is not known, say it in [resources]" if unknown else ""
    return f"{wanted} ({f'{n} of {len(devices)}' if devices else 'none'} {what}{note})"


def in_words(name: str, amount: int) -> str:
    """An amount of a resource in words."""
    if name.startswith(f"{LICENSE}:"):
        licence = name.partition(":")[2]
        return f"the licence {licence}" if amount == 1 else f"{amount} licences {licence}"
    named = {CPU: "processor" if amount == 1 else "processors", MEMORY: "of memory"}.get(name, name)
    return f"{amount_of(name, amount)} {named}"


def amount_of(name: str, amount: int) -> str:
    """A number of a resource as it is written."""
    if name != MEMORY:
        return str(amount)
    return _size(amount) if amount % (1 << 20) == 0 or amount < 1 << 30 else f"{amount / (1 << 30):.1f}G"


def _size(n: int) -> str:
    """Bytes as a text that `workplace.size` reads, if they are a whole number of units."""
    units = ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k"))
    return next((f"{n // unit}{letter}" for unit, letter in units if n >= unit and n % unit == 0), str(n))


def told(needs: Needs) -> str:
    """Needs in words."""
    parts = [f"{needs.gpu} GPU{'s' if needs.gpu > 1 else ''}"] if needs.gpu else []
    parts[-1:] = [f"{parts[-1]} with {_size(needs.vram)}"] if parts and needs.vram else parts[-1:]
    parts += [in_words(name, amount) for name, amount in needs.amounts.items()]
    return ", ".join([*parts, *(["the machine alone"] if needs.exclusive else [])])


def needs_of(value: Any) -> Needs | None:
    """The needs that a value describes; None: nothing is said.

    Raises:
        ValueError: what is wrong with it.
    """
    if value is None or isinstance(value, Needs):
        return value
    stated = _pairs(value) if isinstance(value, str) else value
    if not isinstance(stated, Mapping):
        raise ValueError(f"it must be a mapping, such as {{gpu: 1}}, with {_KEYS}")
    if len(stated) > MOST_NAMES:
        raise ValueError(f"it has more than {MOST_NAMES} names")
    gpu, vram, exclusive = 0, 0, False
    amounts: dict[str, int] = {}
    for key, one in stated.items():
        if key == GPU:
            gpu = _count(key, one)
        elif key == "vram":
            vram = _bytes(key, one)
        elif key == "exclusive":
            exclusive = _switch(one)
        elif key == LICENSE:
            amounts |= dict(_licences(one))
        elif key == MEMORY:
            amounts[key] = _bytes(key, one)
        else:
            amounts[_name(key)] = _count(key, one) if key == CPU else _of_settings(key, one)
    return Needs(gpu or (1 if vram else 0), vram, exclusive, dict(sorted(amounts.items())))


def in_short(value: Any) -> dict[str, Any] | None:
    """Needs as plain data, in one form for all that say the same.

    Raises:
        ValueError: what is wrong with it.
    """
    needs = needs_of(value)
    if needs is None:
        return None
    stated: dict[str, Any] = {GPU: needs.gpu} if needs.gpu else {}
    stated |= {"vram": _size(needs.vram)} if needs.vram else {}
    stated |= {"exclusive": True} if needs.exclusive else {}
    licences = {}
    for name, amount in needs.amounts.items():
        if name.startswith(f"{LICENSE}:"):
            licences[name.partition(":")[2]] = amount
        else:
            stated[name] = _size(amount) if name == MEMORY else amount
    return stated | ({LICENSE: licences} if licences else {})


NeedsTerm = Annotated[
    Any,
    BeforeValidator(in_short),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]}),
]
"""Needs in plans and operations, as `in_short` returns them. A schema says the shortest form: models read it."""


def _pairs(text: str) -> dict[str, Any]:
    """What a text such as ``gpu=1, vram=12G, exclusive`` says; a name alone is one of it."""
    stated: dict[str, Any] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        key, _, value = (one.strip() for one in part.partition("="))
        if key in stated and key != LICENSE:
            raise ValueError(f"{key!r} is said twice")
        if key == "exclusive":
            stated[key] = {"": True, "true": True, "false": False}.get(value, value)
        elif key == LICENSE:
            stated[key] = {**stated.get(key, {}), value: 1}
        else:
            stated[key] = (
                int(value or 1) if not value or (value.isascii() and value.isdecimal() and len(value) < 19) else value
            )
    return stated


def _name(key: Any) -> str:
    if not isinstance(key, str) or not _NAME.fullmatch(key) or key in (ALONE, "gpus", "licenses"):
        raise ValueError(f"{str(key)[:50]!r} is no name of a resource; say {_KEYS}")
    return key


def _count(name: str, value: Any) -> int:
    most = MOST.get(name, MOST_OF_OTHERS)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{name}: it must be a whole number from 1 to {most:,}")
    return value


def _of_settings(name: str, value: Any) -> int:
    """How much is needed of a resource of the settings, which may be another one that is misspelt."""
    try:
        return _count(name, value)
    except ValueError as error:
        known = "gpu, vram, exclusive, cpu, memory, license"
        raise ValueError(f"{error}; it is none of {known}, so a resource of the settings") from None


def _bytes(name: str, value: Any) -> int:
    try:
        count = workplace.size(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"{name}: it {error}") from None
    if isinstance(count, bool) or not isinstance(count, int) or not 1 << 20 <= count <= MOST_BYTES:
        raise ValueError(f"{name}: it must be from 1M to {_size(MOST_BYTES)}, such as 8G")
    return count


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("exclusive: it must be true or false")
    return value


def _licences(value: Any) -> Iterator[tuple[str, int]]:
    counts = {value: 1} if isinstance(value, str) else value
    if not isinstance(counts, Mapping) or not 1 <= len(counts) <= MOST_NAMES:
        raise ValueError("license: it must be a name, or a mapping of names to numbers")
    for name, count in counts.items():
        yield f"{LICENSE}:{_name(name)}", _count(f"{LICENSE}.{name}", count)


# What there is.


@dataclass(frozen=True, slots=True)
class StatedGpu:
    """A GPU that the settings lend: its name or number, its memory in bytes, if they say it, and the device files of
    one that is not found by itself."""

    name: str
    vram: int | None = None
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatedResources:
    """What the settings say that a project has; `gpus` None: all that are found. What is not in `amounts` is found out,
    if it is the processors or the memory."""

    gpus: tuple[StatedGpu, ...] | None = ()
    vram: int | None = None
    amounts: Mapping[str, int] = field(default_factory=dict)


ALL = "all"


def stated_resources(values: Mapping[str, Any]) -> StatedResources:
    """What the table ``[resources]`` of the settings says.

    Raises:
        ValueError: what is wrong with it.
    """
    gpus: tuple[StatedGpu, ...] | None = ()
    vram, amounts = None, dict[str, int]()
    for key, value in values.items():
        if key == "gpus":
            gpus = None if value == ALL else _gpus(value)
        elif key == "vram":
            vram = _bytes(key, value)
        elif key == MEMORY:
            amounts[key] = _bytes(key, value)
        elif key == "licenses":
            amounts |= dict(_licences(value))
        elif key in (GPU, LICENSE, "exclusive"):
            raise ValueError(
                f"there is no {key!r}; the keys are gpus, vram, cpu, memory, licenses, and names of your own"
            )
        else:
            amounts[_name(key)] = _count(key, value)
    return StatedResources(gpus, vram, amounts)


def _gpus(value: Any) -> tuple[StatedGpu, ...]:
    if not isinstance(value, list | tuple) or len(value) > MOST[GPU]:
        raise ValueError(f'gpus: it must be "{ALL}", or a list of at most {MOST[GPU]} names')
    gpus = tuple(map(_gpu, value))
    if len({gpu.name for gpu in gpus}) < len(gpus):
        raise ValueError("gpus: one is named twice")
    return gpus


def _gpu(value: Any) -> StatedGpu:
    stated = value if isinstance(value, Mapping) else {"name": value}
    name, devices = stated.get("name"), stated.get("devices", [])
    name = str(name) if isinstance(name, int) and not isinstance(name, bool) else name
    if (
        stated.keys() - {"name", "vram", "devices"}
        or not isinstance(name, str)
        or not re.fullmatch(r"[\w.:-]{1,100}", name)
    ):
        raise ValueError("gpus: each is a name or a number, or {name, vram, devices}")
    if not isinstance(devices, list | tuple) or not all(
        isinstance(one, str) and one.startswith("/") for one in devices
    ):
        raise ValueError(f"gpus: the devices of {name} are whole paths")
    return StatedGpu(name, _bytes("vram", stated["vram"]) if "vram" in stated else None, tuple(devices))

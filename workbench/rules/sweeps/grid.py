"""The runs of a sweep: one for each combination of values and each repetition; and the marks of their processes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from math import prod
from typing import Any

from workbench.rules.sweeps.specification import Specification
from workbench.rules.sweeps.values import canonical, too_large


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep.

    Args:
        number: its place in the sweep, from 1.
        key: identifies it: the same notebook with the same values and repetition has the same key.
        parameters: the value of each parameter, without those of `over`.
        over: the persona and the definition, if the sweep goes over them.
        repetition: from 1.
    """

    number: int
    key: str
    parameters: Mapping[str, Any]
    over: Mapping[str, str]
    repetition: int

    @property
    def arguments(self) -> dict[str, Any]:
        """What the notebook gets."""
        return {**self.parameters, **self.over}


def count(specification: Specification) -> int:
    """How many runs a sweep has."""
    axes = (*specification.parameters.values(), *specification.over.values())
    return prod(map(len, axes)) * specification.repeat


def grid(specification: Specification, content: str, largest: int) -> tuple[PlannedRun, ...]:
    """All runs, in the order of the values; repetitions follow each other.

    Args:
        content: the hash of the notebook's content.
        largest: most runs.

    Raises:
        BadInput: ``SWEEP_TOO_LARGE``.
    """
    if (runs := count(specification)) > largest:
        raise too_large(runs, largest)
    axes = {**specification.parameters, **specification.over}
    repetitions = range(1, specification.repeat + 1)
    found = []
    for number, (*values, repetition) in enumerate(product(*axes.values(), repetitions), 1):
        chosen = dict(zip(axes, values, strict=True))
        over = {name: chosen.pop(name) for name in specification.over}
        found.append(PlannedRun(number, run_key(content, chosen, over, repetition), chosen, over, repetition))
    return tuple(found)


def run_key(content: str, parameters: Mapping[str, Any], over: Mapping[str, str], repetition: int) -> str:
    """The key of a run: SHA-256 of everything that decides what it does. The order of parameters does not matter."""
    facts = {"notebook": content, "parameters": parameters, "over": over, "repetition": repetition}
    return hashlib.sha256(canonical(facts).encode()).hexdigest()


def digest(specification: Specification, content: str) -> str:
    """What two sweeps have in common exactly if they have the same runs in the same order."""
    facts = [content, [*specification.parameters.items()], [*specification.over.items()], specification.repeat]
    return hashlib.sha256(canonical(facts).encode()).hexdigest()


SWEEP_MARK = "sweep-"
RUN_MARK = "run-"


def sweep_mark(sweep: str, project: str) -> str:
    """The mark of everything that a sweep of a project starts."""
    return f"{SWEEP_MARK}{_digest(f'{project}:{sweep}')}"


def run_mark(key: str, project: str) -> str:
    """The mark of everything that a run starts, whichever try of it.

    Args:
        key: that of its record.
    """
    return f"{RUN_MARK}{_digest(f'{project}:{key}')}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]

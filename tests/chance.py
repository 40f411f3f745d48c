"""Which rounds of a matrix a test tries: chance decides, by a seed that the test prints.

`WORKBENCH_SEED=…` repeats a run; `WORKBENCH_SOAK=1` (`make soak`) has all rounds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")
SOAK = int(os.environ.get("WORKBENCH_SOAK", "0"))
SEED = int(os.environ.get("WORKBENCH_SEED", "0")) or time.time_ns() % 1_000_000


def chance(of: str = "") -> Random:
    """Randomness for one choice of a run. It can be had again: pytest shows with a failure what this prints."""
    print(f"WORKBENCH_SEED={SEED}", flush=True)
    return Random(f"{SEED} {of}")


def some_of(choices: Sequence[T], count: int = 1) -> list[T]:
    """So many of some by chance; all of them in `make soak`."""
    found = list(choices) if SOAK else chance().sample(choices, count)
    print(*found)
    return found

"""The progress of a sweep, as numbers and as a line."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.rules.sweeps.grid import PlannedRun
    from workbench.sweeps.execution import RunOutcome

_VALUE_LENGTH = 24


@dataclass(frozen=True)
class RunningRun:
    """A run that is under way, with `done` of its `cells` executed."""

    run: PlannedRun
    done: int = 0
    cells: int = 0


@dataclass
class SweepProgress:
    """The progress of a sweep. Threads report to it; any thread may read it.

    Args:
        total: all runs of the sweep.
        before: the number of runs that ended earlier and are not executed again, by state.
    """

    name: str
    total: int
    before: Mapping[str, int]
    running: dict[int, RunningRun] = field(default_factory=dict)
    outcomes: list[RunOutcome] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, run: PlannedRun, done: int = 0, cells: int = 0) -> None:
        """Note that a run has begun or advanced."""
        with self._lock:
            self.running[run.number] = RunningRun(run, done, cells)

    def end(self, outcome: RunOutcome) -> None:
        """Note that a run has ended."""
        with self._lock:
            self.running.pop(outcome.run.number, None)
            self.outcomes.append(outcome)

    def under_way(self) -> list[RunningRun]:
        """The runs that are under way, by number."""
        with self._lock:
            return [self.running[number] for number in sorted(self.running)]

    def counts(self) -> Mapping[str, int]:
        """The number of ended runs by state, with those that ended earlier."""
        with self._lock:
            return Counter(self.before) + Counter(str(outcome.state) for outcome in self.outcomes)

    def line(self) -> str:
        """The progress on one line."""
        counts, width = self.counts(), 20
        ended = sum(counts.values())
        filled = width * ended // max(1, self.total)
        parts = [f"{counts[state]} {state}" for state in ("completed", "failed", "cancelled") if counts.get(state)]
        under_way = len(self.under_way())
        parts += [f"{under_way} running"] if under_way else []
        bar = "█" * filled + "░" * (width - filled)
        return f"{self.name} [{bar}] {ended} of {self.total}: {', '.join(parts) or 'none yet'}"


def described(run: PlannedRun) -> str:
    """The values of a run on one line."""
    parts = [f"{name}={_short(value)}" for name, value in run.arguments.items()]
    return ", ".join([*parts, *([f"repetition {run.repetition}"] if run.repetition > 1 else [])]) or "the defaults"


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _VALUE_LENGTH else f"{text[: _VALUE_LENGTH - 1]}…"

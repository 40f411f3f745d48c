"""The facts that all runs of a sweep share."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from workbench.rules.sweeps.grid import PlannedRun, run_mark, sweep_mark
from workbench.rules.sweeps.specification import SweepLimits


class SweepCall(Protocol):
    """Runs an operation as the operator, in any thread."""

    def __call__(self, name: str, /, **arguments: Any) -> Mapping[str, Any]:
        """Run an operation.

        Raises:
            WorkbenchError: what the operation raises.
        """
        ...


@dataclass(frozen=True)
class SweepJob:
    """A sweep that is under way. Can be sent to another machine.

    Args:
        id: of the sweep's record.
        notebook: its path, relative to the project if it is inside.
        text: the notebook as it was when the sweep began or went on, as nbformat writes it.
        content: the hash of what that does.
        directory: the kernels' current directory.
        files_bytes: largest files of the project that are sent to a machine which does not see it, and largest files
            that one run there sends back.
        space: the project whose sessions are the runs' coordination spaces; None: the runs share `session`.
        session: the session that runs share; None: each has its own, or they have none.
        copy_of: the project that `project` is a copy of, on another machine; None: it is none.
    """

    id: int
    name: str
    project: Path
    notebook: str
    text: str
    content: str
    directory: Path
    limits: SweepLimits
    output_bytes: int
    files_bytes: int
    space: str | None
    session: str | None
    copy_of: Path | None = None

    @property
    def mark(self) -> str:
        """The mark of everything that the sweep starts, on each machine."""
        return sweep_mark(self.name, str(self.copy_of or self.project))

    @property
    def outputs(self) -> Path:
        """The directory of the executed notebooks."""
        return self.project / ".aiswarm" / "runs" / self.name

    def output(self, run: PlannedRun, tries: int) -> Path:
        """The executed notebook of a try of a run, from 1.

        No two tries share one: a process elsewhere that still executes an earlier try must not replace the result of a
        later one.
        """
        suffix = f"-{tries}" if tries > 1 else ""
        return self.outputs / f"{run.number:05}-{run.key[:8]}{suffix}.ipynb"

    def key(self, run: PlannedRun) -> str:
        """Identifies a run in the project, where another sweep may have the same run."""
        return f"{self.id}:{run.key}"

    def marks(self, run: PlannedRun) -> tuple[str, str]:
        """The marks of everything that a run starts: that of the sweep, and its own."""
        return self.mark, run_mark(self.key(run), str(self.copy_of or self.project))

    def title(self, run: PlannedRun) -> str:
        """The name of a run."""
        return f"{self.name} {run.number}"


def facts(run: PlannedRun) -> dict[str, Any]:
    """The machine and the values of a run, for its record."""
    machine = {"python": platform.python_version(), "platform": platform.platform(), "machine": os.uname().nodename}
    return {**machine, "repetition": run.repetition, **run.over}

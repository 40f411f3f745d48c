"""A run under way, and the methods that record into it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.recording import values

Call = Callable[..., dict[str, Any]]
OnRecord = Callable[[int, str, Mapping[str, Any], int | None], None]
"""Called with each record: the run's id and name, the values by metric, and the step."""
VARIABLE = "WORKBENCH_RUN"
"""Names the run that a process records into: its id, or id:try, so that a late process of an earlier try is refused."""


class ActiveRun:
    """A run under way. Its methods may be called from any thread.

    Attributes:
        id: the run's id.
        tries: how often it was started; records of an earlier start are refused. None: any.
    """

    def __init__(self, call: Call, run: Mapping[str, Any], tries: int | None, on_record: OnRecord) -> None:
        self._call = call
        self._on_record = on_record
        self.id = int(run["id"])
        self.name = str(run["name"])
        self.tries = tries

    @property
    def environment(self) -> dict[str, str]:
        """The variable with which other processes record into this run: `subprocess.run(…, env=os.environ | …)`."""
        return {VARIABLE: f"{self.id}" if self.tries is None else f"{self.id}:{self.tries}"}

    def record(self, metrics: Mapping[str, Any] | None = None, /, *, step: int | None = None, **more: Any) -> None:
        """Record values: numbers, short texts, or lists of them for consecutive steps.

        Args:
            metrics: values by name, for names that are no Python names, such as ``val/loss``.
            step: None: the next step of each series.

        Raises:
            BadInput: ``NOT_A_METRIC``, ``INVALID_ARGUMENTS``. Conflict: ``TOO_MANY_METRICS``, ``RUN_RESTARTED``.
        """
        recorded, recorded_step = values.metrics(metrics, more), values.step(step)
        self._call("record_metrics", run_id=self.id, metrics=recorded, step=recorded_step, tries=self.tries)
        self._on_record(self.id, self.name, recorded, recorded_step)

    def artifact(
        self, path: str | os.PathLike[str], name: str | None = None, media_type: str | None = None
    ) -> dict[str, Any]:
        """Record a file of the project that the run made. It stays where it is.

        Args:
            path: relative to the current directory.

        Raises:
            NotFound: ``ARTIFACT_NOT_FOUND``. BadInput: ``ARTIFACT_OUTSIDE_PROJECT``.
        """
        place = str(Path(path).absolute())
        return self._call(
            "add_run_artifact", run_id=self.id, path=place, name=name, media_type=media_type, tries=self.tries
        )

    def tag(self, *tags: str) -> None:
        """Give it tags."""
        self._call("update_run", run_id=self.id, add_tags=list(tags))

    def note(self, text: str) -> None:
        """Set its notes, in Markdown."""
        self._call("update_run", run_id=self.id, notes=text)

    def end(self, state: str = "completed", *, error_code: str | None = None, error: str | None = None) -> None:
        """End it. Ending it twice in the same way changes nothing.

        Raises:
            Conflict: ``RUN_ENDED``, ``RUN_RESTARTED``.
        """
        self._call("end_run", run_id=self.id, state=state, error_code=error_code, error=error, tries=self.tries)

    def __repr__(self) -> str:
        return f"Run {self.id}: {self.name}"

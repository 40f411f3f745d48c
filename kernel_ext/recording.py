"""Recording from a notebook: `wb.record`, `wb.run`, `wb.artifact`, `wb.end_run`.

A cell shows the values that it recorded as an output: an executed notebook carries the metrics of its run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kernel_ext.result import Result
from kernel_ext.wording import interruptible
from workbench.recording import Recorder
from workbench.rules.wire.arguments import plain

if TYPE_CHECKING:
    from kernel_ext.hosting.host import KernelHost
    from kernel_ext.objects.kinds import NotebookSession
    from kernel_ext.panels.desk import Desk

MIME = "application/vnd.workbench.record+json"
SHOWN = 8
"""The most metrics that the line names; the data has all."""


class Recording:
    """The part of a session that records runs. It works without the servers too."""

    _host: KernelHost | None

    def __init__(self) -> None:
        self.recorder = Recorder(self._operate, on_record=CellRecords().add)

    def record(self, metrics: Mapping[str, Any] | None = None, /, *, step: int | None = None, **more: Any) -> None:
        """Record values of the current run: numbers, short texts, or lists of them for consecutive steps.

        The current run is that of the innermost `with wb.run(…)`, else the one that a sweep started this notebook for,
        else one that begins now and ends with the kernel or `wb.end_run()`. It needs no server.

        Args:
            metrics: values by name, for names such as ``val/loss``.
            step: None: the next step of each series.

        Raises:
            BadInput: ``NOT_A_METRIC``, ``INVALID_ARGUMENTS``. Conflict: ``TOO_MANY_METRICS``, ``RUN_RESTARTED``.
        """
        self.recorder.record(metrics, step=step, **more)

    def artifact(
        self, path: str | os.PathLike[str], name: str | None = None, media_type: str | None = None
    ) -> dict[str, Any]:
        """Record a file of the project that the current run made. It stays where it is.

        Raises:
            NotFound: ``ARTIFACT_NOT_FOUND``. BadInput: ``ARTIFACT_OUTSIDE_PROJECT``.
        """
        return self.recorder.artifact(path, name, media_type)

    def end_run(self, state: str = "completed") -> None:
        """End the run that `wb.record` began; the next value begins another."""
        self.recorder.end_run(state)

    def _begin(self, name: str, tags: Sequence[str], definitions: Sequence[str], parameters: Mapping[str, Any]) -> Any:
        return self.recorder.run(name, tags=tags, definitions=definitions, **parameters)

    def _operate(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation by the host, or, if there is none, by the server or the store of the project."""
        if self._host is not None and self._host.running:
            return self._host.call(name, **arguments)
        return self.recorder.connection.call(name, **arguments)


class RunCaller:
    """A notebook whose operations need no server: for the list of runs.

    Args:
        operate: runs an operation.
    """

    def __init__(self, notebook: NotebookSession, operate: Callable[..., dict[str, Any]]) -> None:
        self._notebook = notebook
        self._operate = operate

    @property
    def host(self) -> KernelHost:
        """See `WorkbenchSession.host`."""
        return self._notebook.host

    def call(self, name: str, /, **arguments: Any) -> Result:
        """Run an operation.

        Raises:
            WorkbenchError: what the operation raises. Interrupted: ``CALL_INTERRUPTED``.
        """
        with interruptible(name):
            return Result(self._operate(name, **plain(name, arguments)))

    def panel(self, tab: str = "", *, alone: bool = False, dock: bool = False) -> Desk:
        """See `WorkbenchSession.panel`."""
        return self._notebook.panel(tab, alone=alone, dock=dock)

    def run(self, words: list[str], /) -> Any:
        """See `WorkbenchSession.run`."""
        return self._notebook.run(words)


class CellRecords:
    """Gathers the values that a cell records, and shows them once when the cell has ended."""

    def __init__(self) -> None:
        self._runs: dict[int, dict[str, Any]] = {}
        self._is_registered = False

    def add(self, run_id: int, name: str, metrics: Mapping[str, Any], step: int | None) -> None:
        """Note values. Outside IPython this does nothing."""
        from IPython import get_ipython

        shell = get_ipython()
        if shell is None:
            return
        if not self._is_registered:
            shell.events.register("post_run_cell", self._show)
            self._is_registered = True
        record = self._runs.setdefault(run_id, {"run_id": run_id, "name": name, "values": 0, "metrics": {}})
        for metric, recorded in metrics.items():
            values = recorded if isinstance(recorded, list) else [recorded]
            if values:
                last = None if step is None else step + len(values) - 1
                record["metrics"][metric] = {"last": values[-1], "step": last}
                record["values"] += len(values)

    def _show(self, *_: Any) -> None:
        from IPython.display import display

        runs, self._runs = self._runs, {}
        for record in runs.values():
            display({MIME: record, "text/plain": _line(record)}, raw=True)


def _line(record: Mapping[str, Any]) -> str:
    texts = [
        f"{name} {each['last']}" if isinstance(each["last"], str) else f"{name} {each['last']:g}"
        for name, each in record["metrics"].items()
    ]
    more = f", and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return f"Run {record['run_id']} recorded {', '.join(texts[:SHOWN])}{more}."

"""What a cell recorded, as an output of the cell: an executed notebook carries the metrics of its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MIME = "application/vnd.workbench.record+json"
SHOWN = 8
"""The most metrics that the line names; the data has all."""


class CellRecords:
    """Gathers what a cell records, and shows it once when the cell has ended."""

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
        noted = self._runs.setdefault(run_id, {"run_id": run_id, "name": name, "values": 0, "metrics": {}})
        for metric, given in metrics.items():
            values = given if isinstance(given, list) else [given]
            if values:
                last = None if step is None else step + len(values) - 1
                noted["metrics"][metric] = {"last": values[-1], "step": last}
                noted["values"] += len(values)

    def _show(self, *_: Any) -> None:
        from IPython.display import display

        runs, self._runs = self._runs, {}
        for noted in runs.values():
            display({MIME: noted, "text/plain": _line(noted)}, raw=True)


def _line(noted: Mapping[str, Any]) -> str:
    named = [
        f"{name} {each['last']}" if isinstance(each["last"], str) else f"{name} {each['last']:g}"
        for name, each in noted["metrics"].items()
    ]
    more = f", and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return f"Run {noted['run_id']} recorded {', '.join(named[:SHOWN])}{more}."

"""An open project in which runs are started."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.app import Workbench


class Lab:
    """The operations on runs, as a notebook calls them."""

    def __init__(self, workbench: Workbench) -> None:
        self.call = workbench.call
        self.workbench = workbench

    async def start(self, name: str = "trial", **about: Any) -> dict[str, Any]:
        return await self.call("start_run", name=name, **about)

    async def run(self, name: str = "trial", state: str = "completed", **metrics: Any) -> int:
        """A run that recorded some values and has ended."""
        made = await self.start(name)
        if metrics:
            await self.record(made["id"], metrics)
        await self.call("end_run", run_id=made["id"], state=state)
        return int(made["id"])

    async def record(self, run_id: int, metrics: dict[str, Any], **more: Any) -> dict[str, Any]:
        return await self.call("record_metrics", run_id=run_id, metrics=metrics, **more)

    async def list(self, **only: Any) -> list[int]:
        """The ids of the runs in a list."""
        return [run["id"] for run in (await self.call("list_runs", **only))["runs"]]

    async def series(self, run_id: int, **more: Any) -> dict[str, list[list[Any]]]:
        """The series of a run, by name."""
        page = await self.call("get_run_series", run_id=run_id, **more)
        return {series["name"]: series["points"] for series in page["series"]}

    async def events(self, kind: str = "run.*") -> list[dict[str, Any]]:
        """The events of runs, oldest first."""
        found = (await self.call("list_events", kinds=[kind], limit=500))["events"]
        return sorted(found, key=lambda event: event["id"])


@pytest.fixture
def lab(workbench: Workbench) -> Lab:
    return Lab(workbench)


async def pages(lab: Lab, **wanted: Any) -> list[int]:
    """The ids of all pages."""
    found, cursor = [], None
    while True:
        page = await lab.call("list_runs", cursor=cursor, **wanted)
        found += [run["id"] for run in page["runs"]]
        if (cursor := page["next_cursor"]) is None:
            return found

"""What a claim and a completion cost when many tasks wait: as much as when few do."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from tests.bench.project import fill
from tests.conftest import Admit
from workbench.app import Workbench

pytestmark = pytest.mark.anyio

FEW, MANY = 50, 3_000


@pytest.mark.sqlite("counts the steps of SQLite's programs")
async def test_a_claim_and_a_completion_look_at_no_more_rows_when_many_tasks_wait(
    workbench: Workbench, admit: Admit
) -> None:
    ada, steps = await admit("ada"), count()

    def note() -> None:
        next(steps)

    async def cost() -> int:
        """How many hundreds of steps of SQLite's programs a claim and a completion take."""
        before = next(steps)
        task = (await workbench.dispatch(ada.caller, "claim_task", {}))["task"]
        await workbench.dispatch(ada.caller, "complete_task", {"task_id": task["id"]})
        return next(steps) - before - 1

    def watch(tx: Any) -> None:
        tx._db.set_progress_handler(note, 100)

    await workbench.store.write(lambda tx: fill(tx, FEW))
    await workbench.store.write(watch)
    few = await cost()
    await workbench.store.write(lambda tx: fill(tx, MANY, mixed=True))
    many = await cost()
    assert few > 0
    assert many <= few * 2

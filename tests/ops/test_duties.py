"""Duties, recoveries and listeners of services, and the share of time that periodic work takes."""

from __future__ import annotations

import asyncio
from importlib import import_module
from types import FunctionType
from typing import Any

import pytest

from tests.test_house import ROOT, tracked
from workbench.app import Workbench
from workbench.ops.duties import Duties, Duty
from workbench.services import SERVICES
from workbench.services.worktrees import conflicts


@pytest.mark.parametrize(("took", "pause"), [(0.0, 1.0), (0.05, 1.0), (0.1, 1.9), (0.2, 3.8), (60.0, 10.0)])
def test_costly_work_pauses_for_longer_but_not_for_ever(took: float, pause: float) -> None:
    assert Duty("", 1.0, conflicts.watch, share=0.05).pause(took) == pytest.approx(pause)


def test_other_work_pauses_for_the_requested_time() -> None:
    assert Duty("", 0.25, conflicts.watch).pause(60.0) == 0.25


def test_a_duty_that_still_watches_something_runs_again_sooner() -> None:
    assert Duty("", 5.0, conflicts.watch).pause(0.0, 0.25) == 0.25


def test_every_duty_that_a_service_marks_is_collected() -> None:
    marked = {
        fn
        for module in tracked("workbench/services")
        if module.suffix == ".py"
        for fn in vars(import_module(".".join(module.relative_to(ROOT).with_suffix("").parts))).values()
        if isinstance(fn, FunctionType) and hasattr(fn, "marks")
    }
    collected = {mark.fn for mark in Duties.of(SERVICES).marks}
    assert marked == collected
    assert len(marked) > 20


NEEDS_A_THREAD = {"gathering what the person is told", "predicting conflicts"}
"""Their questions to the store are more than a look at an index."""


@pytest.mark.anyio
async def test_work_that_is_done_each_second_wakes_no_thread_to_see_that_there_is_none(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    often = {name: duty for name, duty in workbench.duties.items() if 0.25 <= duty.seconds <= 1}
    read, asking, current, here = workbench.store.read, set[str](), "", asyncio.current_task()

    async def noted(question: Any) -> Any:
        if asyncio.current_task() is here:
            asking.add(current)
        return await read(question)

    workbench._ctx.local.upstreams.open()  # as its server would have it
    monkeypatch.setattr(workbench.store, "read", noted)
    for current, duty in often.items():
        if current not in NEEDS_A_THREAD:
            await duty.perform(workbench._ctx)
    assert len(often) > 10
    assert asking == set()

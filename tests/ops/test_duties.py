"""Duties, recoveries and listeners of services, and the share of time that periodic work takes."""

from __future__ import annotations

import asyncio
from importlib import import_module
from types import FunctionType

import pytest

from tests.test_house import ROOT, tracked
from workbench import app
from workbench.errors import Unavailable
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


@pytest.mark.anyio
async def test_a_duty_that_fails_in_the_same_way_again_is_told_of_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    away, full = Unavailable("STORE_UNAVAILABLE", "It is away."), Unavailable("STORE_FULL", "The disk is full.")
    failures, all_failed = iter([away, away, full, full, away]), asyncio.Event()

    async def work() -> None:
        for failure in failures:
            raise failure
        all_failed.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(app, "RESTART_SECONDS", 0)
    working = asyncio.create_task(app._supervised("counting", work))
    await all_failed.wait()
    working.cancel()
    said = "counting failed; it is tried again until it works: "
    assert caplog.messages == [f"{said}{error.code}: {error.message}" for error in (away, full, away)]
    assert [record.exc_info for record in caplog.records] == [None] * 3

"""Plans that the server begins: at their time, once, late or not at all when it was missed, and again when they die."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import given
from tests.conftest import Clock
from workbench.app import Workbench
from workbench.model import SECOND
from workbench.services import schedules
from workbench.services.schedules import MOST_STARTS
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

PLAN = "plan: tidy\ntasks:\n  - {name: a, title: A, persona: implementer, run: 'true'}\n"
PROGRAM = '#!/bin/sh\nprintf "%s\\n" "$@" >> "{log}"\necho . >> "{log}"\nif [ -e "{stays}" ]; then exec sleep 600; fi\n'
HOUR = 3_600


class Begun:
    """A program in place of `workbench run`, which notes how it is started, and stays as long as `stays` exists."""

    def __init__(self, place: Path) -> None:
        self.log, self.stays, self.program = place / "begun", place / "stays", place / "program"
        self.program.write_text(PROGRAM.format(log=self.log, stays=self.stays))
        self.program.chmod(0o755)

    async def times(self, number: int) -> list[list[str]]:
        """The arguments of each start, once there were so many."""

        def starts() -> list[str]:
            return self.log.read_text().split("\n.\n")[:-1] if self.log.exists() else []

        await given.until(lambda: len(starts()) >= number)
        return [start.split("\n") for start in starts()]


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begun:
    (place := tmp_path / "programs").mkdir()
    begun = Begun(place)
    monkeypatch.setattr(sys, "executable", str(begun.program))
    return begun


@pytest.fixture
async def workbench(settings: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    told = Settings.model_validate({**settings.model_dump(), "notify_digest_seconds": 0})
    async with Workbench.open(told, clock=clock) as workbench:
        await workbench.call("create_plan", text=PLAN)
        workbench._ctx.local.turn.until = sys.maxsize  # as its server, which nobody starts here, would have it
        yield workbench


async def perform(workbench: Workbench) -> None:
    await workbench.duties["starting what is scheduled"].perform(workbench._ctx)


async def schedule(workbench: Workbench) -> dict[str, Any]:
    (only,) = (await workbench.call("list_schedules"))["schedules"]
    return dict(only)


async def gone(workbench: Workbench) -> None:
    """Wait until the process of the execution has ended."""
    row = await workbench.store.read(lambda tx: tx.one(schedules.SQL.get, plan="tidy"))
    assert row is not None
    pid = int(row["process"].rpartition("/")[2].partition(":")[0])
    await given.until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def at(clock: Clock, seconds: float) -> str:
    """The local time of day in so many seconds."""
    return f"{datetime.fromtimestamp(clock.now / SECOND + seconds):%H:%M}"


async def test_a_plan_is_begun_at_its_time_with_its_options_and_not_twice(
    workbench: Workbench, clock: Clock, begun: Begun
) -> None:
    begun.stays.touch()
    how = {"staff": "implementer=2", "integrate": "auto-if-checked", "budget": "3usd", "until": at(clock, 9 * HOUR)}
    first = await workbench.call("schedule_plan", plan="tidy", at=at(clock, HOUR), every="day", partly=True, **how)
    await perform(workbench)
    assert (first["started_at"], begun.log.exists()) == (None, False)
    clock.forward(HOUR + 30)
    for _ in range(3):
        await perform(workbench)
    (arguments,) = await begun.times(1)
    until = f"{datetime.fromtimestamp(clock.now / SECOND + 8 * HOUR - 30):%Y-%m-%dT%H:}"
    assert arguments[:4] == ["-P", "-m", "workbench.cli", "run"]
    assert arguments[6:10] == ["--scheduled", "--staff=implementer=2", "--integrate=auto-if-checked", "--budget=3usd"]
    assert arguments[10].startswith(f"--until={until}")
    assert arguments[11:] == ["--partly", "--", "tidy"]
    again = await schedule(workbench)
    assert again["ended_at"] is None
    assert again["next_at"] > first["next_at"]
    clock.forward(24 * HOUR)
    await perform(workbench)
    assert len(await begun.times(1)) == 1, "the one before is still under way"
    assert "schedule.missed" in await given.kinds(workbench, "schedule.*")
    assert (await workbench.call("cancel_schedule", plan="tidy", end_running=True))["ended"]
    assert (await workbench.call("list_schedules"))["schedules"] == []


@pytest.mark.parametrize(("missed", "starts"), [("run", 1), ("skip", 0)])
async def test_starts_that_were_missed_are_made_up_for_once_or_left_out_and_the_person_is_told(
    workbench: Workbench, clock: Clock, begun: Begun, missed: str, starts: int
) -> None:
    await workbench.call("schedule_plan", plan="tidy", at=at(clock, HOUR), every="day", missed=missed)
    clock.forward(3 * 24 * HOUR)
    await perform(workbench)
    await workbench.call("note_schedule_end", plan="tidy", status=0, outcome="All done.")
    await perform(workbench)
    assert len(await begun.times(starts)) == starts
    assert (await schedule(workbench))["outcome"] == ("All done." if starts else None)
    await workbench.duties["gathering what the person is told"].perform(workbench._ctx)
    ((item,),) = [one["items"] for one in (await workbench.call("list_notifications"))["notifications"]]
    assert item["text"].startswith("The plan tidy was begun 4" if starts else "The plan tidy was not carried out when")


async def test_an_execution_that_dies_without_an_account_is_begun_again_but_not_for_ever(
    workbench: Workbench, clock: Clock, begun: Begun
) -> None:
    await workbench.call("schedule_plan", plan="tidy", every="6h")
    for number in range(MOST_STARTS):
        await perform(workbench)
        assert len(await begun.times(number + 1)) == number + 1
        await gone(workbench)
    await perform(workbench)
    ended = await schedule(workbench)
    assert (ended["status"], ended["outcome"][:16]) == (None, f"It ended {MOST_STARTS} times")
    await perform(workbench)
    assert len(await begun.times(MOST_STARTS)) == MOST_STARTS
    clock.forward(6 * HOUR)
    await perform(workbench)
    assert len(await begun.times(MOST_STARTS + 1)) == MOST_STARTS + 1


async def test_one_whose_time_is_over_is_not_begun_again(workbench: Workbench, clock: Clock, begun: Begun) -> None:
    await workbench.call("schedule_plan", plan="tidy", every="day", until=at(clock, 2 * HOUR))
    await perform(workbench)
    await begun.times(1)
    await gone(workbench)
    clock.forward(3 * HOUR)
    await perform(workbench)
    assert "was ended before its time was over" in (await schedule(workbench))["outcome"]


async def test_what_cannot_be_scheduled_is_refused(workbench: Workbench) -> None:
    for code, arguments in (
        ("PLAN_NOT_FOUND", {"plan": "none", "at": "22:00"}),
        ("BAD_SCHEDULE", {"at": "24:00"}),
        ("BAD_SCHEDULE", {"every": "month"}),
        ("BAD_SCHEDULE", {"every": "day", "until": "noon"}),
        ("BAD_STAFF", {"every": "day", "staff": "reviewer=0"}),
        ("BAD_BUDGET", {"every": "day", "budget": "much"}),
        ("INVALID_ARGUMENTS", {"every": "day", "missed": "later"}),
    ):
        await given.refuses(code, workbench.call("schedule_plan", **{"plan": "tidy", **arguments}))
    await given.refuses("SCHEDULE_NOT_FOUND", workbench.call("cancel_schedule", plan="tidy"))

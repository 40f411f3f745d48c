"""A night ends as one in which nothing happens: nothing is lost, nothing done twice, nothing believed unchecked."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.chance import SOAK
from tests.conftest import git
from tests.night.night import Night, Script, file_of, night

HOUR = Script(
    tasks=6,
    turns=4,
    places=1,
    turn_minutes=1.5,
    liars=[0],
    bunglers=[1],
    silent=[2],
    limits=[("anthropic", 3, 9)],
    killed_workers=[5],
    killed_servers=[11],
    full=[(17, 19)],
    restarts=[23],
    silence_seconds=900.0,
)
TEN_HOURS = Script(
    tasks=40,
    turns=24,
    places=2,
    liars=[3, 10],
    bunglers=[4],
    silent=[5],
    limits=[("anthropic", 50, 110), ("openai", 200, 240), ("gemini", 330, 345)],
    killed_workers=[130, 270],
    killed_servers=[180, 400],
    full=[(290, 300)],
    restarts=[450],
)


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_an_hour_with_all_that_can_happen_in_a_night_ends_as_one_without(tmp_path: Path) -> None:
    with night(tmp_path / "night", HOUR) as begun:
        begun.through(most_minutes=180)
        check(begun)


@pytest.mark.skipif(not SOAK, reason="takes minutes: make soak")
@pytest.mark.chaos
@pytest.mark.timeout(3_400)
def test_ten_hours_with_all_that_can_happen_in_a_night_end_as_ones_without(tmp_path: Path) -> None:
    trees = []
    for name, script in (("quiet", TEN_HOURS.undisturbed), ("night", TEN_HOURS)):
        with night(tmp_path / name, script) as begun:
            began = time.monotonic()
            begun.through(most_minutes=900)
            print(f"{name}: {begun.minutes / 60:.1f} hours in {time.monotonic() - began:.0f} s")
            check(begun)
            trees.append(git("rev-parse", "main^{tree}", cwd=begun.project))
    assert trees[0] == trees[1]


def check(night: Night) -> None:
    """Look at what a night has left in the morning."""
    account, script = night.ask("account", "night"), night.script
    assert {task["state"] for task in account["tasks"].values()} == {"completed, checked"}
    assert {task["check"].partition(" ")[0] for task in account["tasks"].values()} == {"passed"}
    assert (len(account["tasks"]), account["unmerged"], account["approvals"]) == (script.tasks, [], [])
    assert git("diff", "--name-only", "HEAD~0", "main", cwd=night.project) == ""
    changed = git("log", "--no-merges", "--name-only", "--format=", "main", "--", "night", cwd=night.project).split()
    assert Counter(changed) == Counter(file_of(number) for number in range(script.tasks)), "each is done once"
    with closing(sqlite3.connect(night.project / ".aiswarm" / "coordination.db")) as db:
        ends = Counter(subject for (subject,) in db.execute("SELECT subject FROM events WHERE kind = 'task.completed'"))
    assert set(ends.values()) == {1}
    assert len(ends) == script.tasks
    _check_hours(account["hours"], script)
    night.wait(lambda: any(item["what"] == "done" for told in night.told() for item in told["items"]))
    told = [(item["what"], item["subject"]) for message in night.told() for item in message["items"]]
    assert len(told) == len({*told}), "nothing is told twice"
    assert len(night.told()) <= len(script.silent) + 3, "the night is no hundred messages"


def _check_hours(hours: list[dict[str, Any]], script: Script) -> None:
    assert [hour["start"] for hour in hours[1:]] == [hour["end"] for hour in hours[:-1]]
    assert [hour for hour in hours if hour["unexplained_seconds"]] == []
    happened = "\n".join(line for hour in hours for line in (*hour["happened"], *hour["idle"]))
    for expected, names in {
        "failed, tried again": (*script.liars, *script.bunglers),
        "agent silent": script.silent,
        "held: account": script.limits,
        "agent ended": script.killed_workers,
        "server started again": (*script.killed_servers, *script.restarts),
    }.items():
        assert (expected in happened) >= bool(names), happened

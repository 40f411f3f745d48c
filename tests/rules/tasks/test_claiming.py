"""Why an agent cannot claim a task: all reasons, in words; what names of artifacts mean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.model import TaskState
from workbench.rules.tasks import artifacts
from workbench.rules.tasks.claiming import Claimant, Wanted, obstacles
from workbench.rules.tasks.commands import note_on_missing

ADA = Claimant("a1", "tester", "lab")
OPEN = Wanted(TaskState.PENDING, None, "tester", None, None, None, {}, None)
RETRY = "which a planner or the operator has to retry first"
NO_COMMAND = "it has no command; only an LLM agent or a person can do it"


@pytest.mark.parametrize(
    ("task", "who", "reasons"),
    [
        ({}, {}, {}),
        ({"worktree": "lab"}, {}, {}),
        ({"status": TaskState.CLAIMED, "holder": "bob"}, {}, {"held": "it is claimed, held by bob"}),
        ({"status": TaskState.IN_PROGRESS, "holder": "bob"}, {}, {"held": "it is in_progress, held by bob"}),
        ({"status": TaskState.COMPLETED, "persona": "poet"}, {}, {"ended": "it is completed"}),
        ({"persona": "poet"}, {}, {"persona": "it is for the persona poet, and yours is tester"}),
        ({"persona": "poet"}, {"persona": None}, {"persona": "it is for the persona poet, and you have none"}),
        ({"worktree": "hut"}, {}, {"worktree": "it is for the worktree hut, and yours is lab"}),
        ({"worktree": "hut"}, {"worktree": None}, {"worktree": "it is for the worktree hut, and you have none"}),
        ({"reserved_for": "a1", "persona": "poet", "worktree": "hut"}, {}, {}),
        ({"reserved_for": "b2", "reserved_name": "bob"}, {}, {"reserved": "it is reserved for bob"}),
        ({"has_command": False}, {}, {}),
        ({"has_command": True}, {"commands_only": True}, {}),
        ({"has_command": False}, {"commands_only": True}, {"command": NO_COMMAND}),
        ({"not_before": 0}, {}, {"backoff": "its next attempt may begin at 1970-01-01T00:00:00.000Z"}),
        ({"waits": {7: TaskState.PENDING, 8: TaskState.CLAIMED}}, {}, {"dependency": "it waits for 7, 8"}),
        (
            {"waits": {7: TaskState.FAILED, 8: TaskState.CANCELLED, 9: TaskState.PENDING}, "persona": "poet"},
            {},
            {
                "persona": "it is for the persona poet, and yours is tester",
                "dependency_failed": f"it depends on 7 (failed), 8 (cancelled), {RETRY}",
                "dependency": "it waits for 9",
            },
        ),
    ],
)
def test_every_reason_is_named_and_no_other(task: dict[str, Any], who: dict[str, Any], reasons: dict[str, str]) -> None:
    assert obstacles(replace(OPEN, **task), replace(ADA, **who)) == reasons


def test_of_many_dependencies_some_are_listed() -> None:
    for many, end in ((12, "11, 12"), (13, "12 and 1 more"), (1_013, "12 and 1,001 more")):
        waits = dict.fromkeys(range(1, many + 1), TaskState.PENDING)
        assert obstacles(replace(OPEN, waits=waits), ADA)["dependency"].endswith(f", {end}")


def test_tasks_without_a_command_are_noted() -> None:
    one, more = "only an LLM agent or a person can do it.", "only an LLM agent or a person can do them."
    assert note_on_missing([]) is None
    assert note_on_missing([7]) == f"Task 7 has no command (run): {one}"
    assert note_on_missing(range(1, 6)) == f"Tasks 1, 2, 3, 4, 5 have no command (run): {more}"
    assert note_on_missing(range(1, 7)) == f"Tasks 1, 2, 3, 4, 5 and 1 more have no command (run): {more}"


# Artifacts

ROOT = Path("/project")


def test_a_name_says_whether_it_is_a_file_a_commit_or_an_address() -> None:
    kinds = {"out/plot.png": "file", "C: notes": "file", "commit:1": "commit"}
    kinds |= {"https://example.org/a": "address", "s3://bucket/a": "address"}
    assert {name: artifacts.kind(name) for name in kinds} == kinds


def test_the_last_whole_commit_is_that_of_the_work() -> None:
    one, other = "a" * 40, "b" * 40
    assert artifacts.commit(["x", f"commit:{one}", f"commit:{other}", "commit:b", "commit:--all"]) == other
    assert artifacts.commit(["x", "commit:1"]) is None


def test_a_path_is_relative_to_the_directory() -> None:
    places = {"./a//b.txt": "a/b.txt", "/project/a": "a", "/elsewhere/a": None, "/project": None, ".": None}
    assert {name: artifacts.place(name, ROOT) for name in places} == places


@given(st.text(st.sampled_from("./ab\0") | st.characters(), max_size=20))
def test_no_name_leads_out_of_the_directory(name: str) -> None:
    place = artifacts.place(name, ROOT)
    if place is not None:
        path = PurePosixPath(place)
        assert not path.is_absolute()
        assert ".." not in path.parts
        assert path.parts
        assert "\0" not in place

"""Why an agent cannot claim a task: all reasons, in words; and the note on tasks that have no command."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from workbench.model import TaskState
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


@pytest.mark.parametrize(("many", "end"), [(12, "11, 12"), (13, "12 and 1 more"), (1_013, "12 and 1,001 more")])
def test_of_many_dependencies_some_are_listed(many: int, end: str) -> None:
    waits = dict.fromkeys(range(1, many + 1), TaskState.PENDING)
    assert obstacles(replace(OPEN, waits=waits), ADA)["dependency"].endswith(f", {end}")


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([], None),
        ([7], "Task 7 has no command (run): only an LLM agent or a person can do it."),
        ([1, 2, 3, 4, 5], "Tasks 1, 2, 3, 4, 5 have no command (run): only an LLM agent or a person can do them."),
        (
            range(1, 7),
            "Tasks 1, 2, 3, 4, 5 and 1 more have no command (run): only an LLM agent or a person can do them.",
        ),
    ],
)
def test_tasks_without_a_command_are_noted(ids: list[int], said: str | None) -> None:
    assert note_on_missing(ids) == said

"""A misspelt name gets the names that may be meant."""

from __future__ import annotations

import pytest

from workbench.rules.spelling import LONGEST, similar

NAMES = ["claim_task", "create_task", "create_team", "list_tasks", "title", "agent_id"]


@pytest.mark.parametrize(
    ("word", "meant"),
    {
        "clam_task": "claim_task, create_task or list_tasks",
        "titel": "title",
        "Title": "title",
        "agentid": "agent_id",
        "task_create": "create_task",
        "create-task": "create_task",
        "zzz": "",
        "": "",
        "create_task" * LONGEST: "",
    }.items(),
)
def test_the_nearest_names_are_suggested(word: str, meant: str) -> None:
    assert similar(word, NAMES) == meant
    assert similar(word, []) == ""

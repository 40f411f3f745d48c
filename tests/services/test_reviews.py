"""Requests for changes: comments on lines, their recipients, and how later commits move or outdate them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, followed, git
from tests.git.parts import CommandLog
from tests.services.worktrees.lab import ask, commit
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound

pytestmark = pytest.mark.anyio

MODEL = "def mean(values):\n    return sum(values) / len(values)\n\n\ndef median(values):\n    return values[0]\n"


@pytest.fixture
async def lab(workbench: Workbench) -> Path:
    """The worktree `lab`, with a commit of `model.py`."""
    place = await given.worktree(workbench)
    commit(place, "model.py", MODEL)
    return place


async def request(workbench: Workbench, *comments: dict[str, Any], **how: Any) -> dict[str, Any]:
    """Request changes in the worktree `lab`."""
    return await workbench.call("request_changes", worktree_name="lab", comments=list(comments), **how)


async def requests(workbench: Workbench, name: str | None = "lab") -> list[dict[str, Any]]:
    """The requests, the newest first."""
    return list((await workbench.call("get_requested_changes", worktree_name=name))["requests"])


MEDIAN = {"path": "model.py", "line": 5, "end_line": 6, "text": "Sort first."}


async def test_a_request_quotes_its_lines_and_leaves_the_question_open(workbench: Workbench, lab: Path) -> None:
    asked = await ask(workbench)
    made = await request(workbench, MEDIAN, note="Nearly there.")
    assert (made["approval_id"], made["commits_since"]) == (asked, 0)
    assert made["commit"] == git("rev-parse", "HEAD", cwd=lab)
    (comment,) = made["comments"]
    assert comment["quoted"] == ["def median(values):", "    return values[0]"]
    assert (comment["outdated"], comment["current_line"]) == (False, 5)
    approval = await workbench.call("get_approval", approval_id=asked)
    assert (approval["status"], approval["changes_requested_at"]) == ("pending", made["requested_at"])
    assert await requests(workbench) == await requests(workbench, None) == [made]
    waiting = asyncio.create_task(workbench.call("get_approval", approval_id=asked, wait_seconds=30))
    await followed(workbench)
    await workbench.call("reject", approval_id=asked, reason="Not like this.")
    assert (await waiting)["status"] == "rejected", "who waits after the request waits for the decision"
    await workbench.call("discard_worktree", worktree_name="lab")
    assert len(await requests(workbench)) == 1
    assert await requests(workbench, None) == []
    await given.worktree(workbench, branch_name="wb/lab/again")
    assert await requests(workbench) == [], "they were of an earlier worktree of this name"


async def test_a_planner_waiting_for_the_decision_learns_of_requested_changes(
    workbench: Workbench, admit: Admit
) -> None:
    planner = await admit("planner", persona_id="planner")
    place = (await workbench.dispatch(planner.caller, "create_worktree", {"name": "lab"}))["path"]
    commit(Path(place), "model.py", MODEL)
    asked = await workbench.dispatch(planner.caller, "integrate_worktree", {"worktree_name": "lab"})
    waiting = {"approval_id": asked["approval_id"], "wait_seconds": 20}
    found, _ = await asyncio.gather(
        workbench.dispatch(planner.caller, "get_approval", waiting), request(workbench, MEDIAN)
    )
    assert (found["status"], found["changes_requested_at"] is not None) == ("pending", True)
    page = await workbench.dispatch(planner.caller, "list_events", {"kinds": ["approval.changes_requested"]})
    assert [event["subject"] for event in page["events"]] == [f"approval:{asked['approval_id']}"]


@pytest.mark.usefixtures("lab")
async def test_agents_with_open_tasks_in_the_worktree_are_told_of_comments(workbench: Workbench, admit: Admit) -> None:
    ada, task = await admit("ada", worktree="lab"), await given.task(workbench, target_worktree="lab")
    await given.task(workbench, "elsewhere")
    await given.claim(workbench, ada, task)
    await request(workbench, MEDIAN)
    events = (await workbench.dispatch(ada.caller, "list_events", {"kinds": ["task.changes_requested"]}))["events"]
    assert [event["subject"] for event in events] == [f"task:{task}"]
    several = {"path": "model.py", "line": 2, "text": "Which mean?\nSay so."}
    made = await request(workbench, MEDIAN, several, note="Two things.", persona_id="implementer")
    found = await workbench.dispatch(ada.caller, "get_requested_changes", {"worktree_name": "lab"})
    assert [comment["text"] for comment in found["requests"][0]["comments"]] == [MEDIAN["text"], several["text"]]
    new = await given.task_now(workbench, made["task_id"])
    assert (new["title"], new["worktree"], new["persona_id"]) == ("Change lab as requested", "lab", "implementer")
    assert new["description"] == "Two things.\n\n- model.py:5-6: Sort first.\n- model.py:2: Which mean?\n  Say so."


async def test_comments_move_with_their_lines_until_those_change(workbench: Workbench) -> None:
    place = await given.worktree(workbench)
    first = commit(place, "model.py", MODEL)
    mean = {"path": "model.py", "line": 1, "text": "Say which mean."}
    await request(workbench, MEDIAN, mean)
    commit(place, "model.py", f'"""Statistics."""\n\n{MODEL.replace("values[0]", "sorted(values)[len(values) // 2]")}')
    ((found,),) = (await requests(workbench),)
    assert found["commits_since"] == 1
    assert [(comment["outdated"], comment["current_line"]) for comment in found["comments"]] == [
        (True, None),
        (False, 3),
    ]
    (again,) = (await request(workbench, mean, commit=first))["comments"]
    assert (again["quoted"], again["current_line"]) == (["def mean(values):"], 3)
    since = await workbench.call("get_worktree_diff", worktree_name="lab", since=first)
    assert [(file["path"], file["added"], file["removed"]) for file in since["files"]] == [("model.py", 3, 1)]
    git("rm", "-q", "model.py", cwd=place)
    commit(place, "other.py")
    comments = [comment for found in await requests(workbench) for comment in found["comments"]]
    assert [comment["outdated"] for comment in comments] == [True, True, True]


@pytest.mark.long
async def test_as_many_git_commands_run_for_many_requests_as_for_a_few(
    workbench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, log = await given.worktree(workbench), CommandLog(tmp_path / "logged")
    monkeypatch.setenv("PATH", f"{log.folder}:{os.environ['PATH']}")
    ran = []
    for n in range(4):
        commit(place, "model.py", f"{MODEL}# {n}\n")
        await request(workbench, MEDIAN)
        log.commands()
        found = await requests(workbench)
        assert [one["commits_since"] for one in found] == list(range(n + 1))
        ran.append(log.commands())
    assert ran[1] == ran[2] == ran[3]


@pytest.mark.long
async def test_a_comment_on_removed_lines_is_outdated_when_they_are_back(
    workbench: Workbench, repository: Path
) -> None:
    commit(repository, "model.py", MODEL)
    place = await given.worktree(workbench)
    commit(place, "model.py", "def mean(values):\n    return 0\n")
    removed = {"path": "model.py", "line": 5, "side": "old", "text": "Why?"}
    made = await request(workbench, removed)
    assert (made["comments"][0]["quoted"], made["comments"][0]["outdated"]) == (["def median(values):"], False)
    commit(place, "model.py", MODEL)
    assert (await requests(workbench))[0]["comments"][0]["outdated"] is True


NO_LINES = (
    {"path": "none.py", "line": 1},
    {"path": "model.py", "line": 7},
    {"path": "model.py", "line": 3, "end_line": 2},
)


@pytest.mark.usefixtures("lab")
async def test_a_request_needs_a_comment_existing_lines_and_an_open_worktree(workbench: Workbench) -> None:
    for place in NO_LINES:
        with pytest.raises(BadInput, match="LINES_NOT_FOUND"):
            await request(workbench, place | {"text": "?"})
    with pytest.raises(BadInput, match="NOTHING_REQUESTED"):
        await request(workbench, note=" ")
    assert await requests(workbench) == []
    await workbench.call("discard_worktree", worktree_name="lab")
    with pytest.raises(Conflict, match="WORKTREE_CLOSED"):
        await request(workbench, note="Change it.")
    with pytest.raises(NotFound, match="WORKTREE_NOT_FOUND"):
        await requests(workbench, "none")

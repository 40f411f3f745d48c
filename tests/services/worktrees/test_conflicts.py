"""The conflict radar: merges of all active worktrees are predicted, and changes are announced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Served, git
from tests.services.worktrees.lab import commit, worktree_row
from workbench.app import Workbench
from workbench.git import Repository

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def pairs(workbench: Workbench) -> list[tuple[str, str, bool, list[str]]]:
    """The coming conflicts."""
    found = (await workbench.call("list_conflicts"))["pairs"]
    return [(pair["one"], pair["other"], pair["is_target"], pair["files"]) for pair in found]


async def changes(workbench: Workbench, after: int = 0) -> list[dict[str, Any]]:
    """The events about conflicts, from one of them on."""
    return (await workbench.call("list_events", kinds=["worktree.conflicts_changed"]))["events"][after:]


async def announced_conflicts(workbench: Workbench) -> list[Any]:
    """The data of the events about conflicts."""
    pairs = [event["data"]["pairs"] for event in await changes(workbench)]
    return [[(pair["one"], pair["other"], pair["files"]) for pair in those] for those in pairs]


async def test_conflicts_are_foreseen_with_the_target_and_each_other(workbench: Workbench, repository: Path) -> None:
    assert (await workbench.call("list_conflicts"))["checked"] == 0
    one_, two, three = [await given.worktree(workbench, name) for name in ("a", "b", "c")]
    commit(one_, "README.md", "# One\n")
    commit(two, "README.md", "# Two\n")
    tip = commit(three, "three.txt")
    page = await workbench.call("list_conflicts")
    assert page["commits"]["c"] == tip
    assert page["checked"] == 6
    assert await pairs(workbench) == [("a", "b", False, ["README.md"])]
    commit(repository, "README.md", "# Mine\n")
    assert await pairs(workbench) == [
        ("a", "main", True, ["README.md"]),
        ("b", "main", True, ["README.md"]),
        ("a", "b", False, ["README.md"]),
    ]
    await given.worktree(workbench, "late")  # it has changed nothing: the conflicts of its target are not its own
    commit(await given.worktree(workbench, "later"), "later.txt")
    assert [pair for pair in await pairs(workbench) if {"late", "later"} & {*pair[:2]}] == []
    status = await worktree_row(workbench, "a")
    assert (status["conflicts"], status["overlaps"]) == (["README.md"], [{"worktree": "b", "files": ["README.md"]}])
    await workbench.call("discard_worktree", worktree_name="a")
    assert await pairs(workbench) == [("b", "main", True, ["README.md"])]


async def test_known_predictions_of_merges_are_not_computed_again(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = Repository.predict_merges

    def counting(self: Repository, wanted: Any) -> Any:
        asked.append(len(wanted))
        return real(self, wanted)

    monkeypatch.setattr(Repository, "predict_merges", counting)
    places = [await given.worktree(workbench, f"w{number}") for number in range(4)]
    for number, place in enumerate(places):
        commit(place, f"{number}.txt")
    for _ in range(3):
        await workbench.call("list_conflicts")
        await workbench.call("get_worktree_status")
    assert asked == [6 + 4]
    commit(places[0], "more.txt")
    await workbench.call("list_conflicts")
    assert asked == [10, 3 + 1]


async def test_a_server_announces_changes_of_predicted_conflicts(served: Served, repository: Path) -> None:
    workbench = served.workbench
    one_, two = await given.worktree(workbench, "a"), await given.worktree(workbench, "b")
    commit(one_, "README.md", "# One\n")
    commit(two, "README.md", "# Two\n")
    assert [event["actor"] for event in await given.until(lambda: changes(workbench))] == ["system"]
    git("reset", "-q", "--hard", "HEAD~1", cwd=two)
    await given.until(lambda: changes(workbench, 1))
    assert await announced_conflicts(workbench) == [[("a", "b", ["README.md"])], []]
    assert git("rev-parse", "wb/b/main", cwd=repository) == git("rev-parse", "main", cwd=repository)

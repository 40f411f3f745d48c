"""A worktree whose target has moved is brought up to date before an attempt, or the agent is told why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Admit, Served
from tests.services.worktrees.lab import commit, worktree_row
from tests.worker.working import directory_of, done, output_of, working
from workbench.rules.profile import Profile
from workbench.worker import supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)


@pytest.mark.long
async def test_an_attempt_begins_with_the_target_merged_or_is_told_by_how_much_it_is_behind(
    served: Served, settle: Admit, repository: Path
) -> None:
    ada = await settle("ada", "lab")
    commit(repository, "newer.txt")
    says_prompt = Profile(name="p", summary="p", command=["/bin/sh", "-c", "ls; cat"], stdin="prompt")
    async with working(served, ada.token, profile=says_prompt):
        task = await done(served, None)
        assert "newer.txt" in await output_of(served, task["id"])
        assert (await worktree_row(served.workbench))["behind"] == 0
        commit(directory_of(served), "README.md", "# Theirs\n")
        commit(repository, "README.md", "# Mine\n")
        told = await done(served, None)
    note = "The worktree lab is 1 commit behind its target main, with which it conflicts in README.md."
    assert (await output_of(served, told["id"])).count(note) == 2
    row = await worktree_row(served.workbench)
    assert (row["behind"], row["conflicts"]) == (1, ["README.md"])

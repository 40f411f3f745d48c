"""An attempt without a worktree reads a checkout of the target's commit, in which it can change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Admit, Served, git
from tests.services.worktrees.lab import commit
from tests.worker.working import done, output_of, working
from workbench.confinement import Box, abilities
from workbench.services.worktrees import checkouts
from workbench.worker import supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)


WRITES = "echo x > README.md || echo refused; echo x > new || echo refused; git tag t || echo refused; rm README.md; ls"


@pytest.mark.long
@pytest.mark.skipif(abilities().abi == 0, reason="nothing is confined here")
@pytest.mark.parametrize("namespaces", [abilities().namespaces, frozenset()], ids=["namespaces", "none"])
async def test_a_task_without_a_worktree_reads_the_target_as_it_is_now_and_changes_nothing(
    served: Served, admit: Admit, repository: Path, namespaces: frozenset[str]
) -> None:
    settings = served.workbench.settings
    ada, box = await admit("ada"), Box(write=(), read=(), scratch=Path("/scratch"), namespaces=namespaces)
    (repository / "README.md").write_text("not committed\n")
    async with working(served, ada.token, None, box=box):
        task = await done(served, f"cat README.md; git log --format=%s; echo 1 > $TMPDIR/own; {WRITES}")
        commit(repository, "newer.txt")
        later = await done(served, "pwd; cat newer.txt; git status --short")
    said = await output_of(served, task["id"])
    assert said.count("refused") == 3
    assert "README.md" in said[said.index("refused") :]
    assert "not committed" not in said
    where, *rest = await output_of(served, later["id"])
    tip, commits = git("rev-parse", "main", cwd=repository), {path.name for path in settings.checkouts.iterdir()}
    assert (rest, Path(where)) == (["new"], settings.checkouts / tip / "files")
    assert len(commits) == 2
    assert git("worktree", "list", cwd=repository).count("\n") == 0


@pytest.mark.long
async def test_few_checkouts_are_kept(
    served: Served, admit: Admit, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkouts, "_BEHIND_SECONDS", 0.05)  # the tasks come one soon after the other
    ada, kept = await admit("ada"), served.workbench.settings.max_checkouts
    async with working(served, ada.token, None):
        for number in range(kept + 2):
            commit(repository, f"f{number}")
            await done(served, f"cat f{number}")
    assert len(list(served.workbench.settings.checkouts.iterdir())) == kept

"""Which files a pattern brings into a worktree; what it names and git does not list is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import git
from tests.given import refused
from workbench.git import Repository


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("/etc/passwd", "is outside of the project"),
        ("out/passwd", "is behind the link out"),
        ("out/*", "is behind the link out"),
        ("/here/linked/rows.csv", "is behind the link here/linked"),
    ],
)
def test_a_pattern_that_leads_behind_a_link_or_out_of_the_project_is_refused(
    repository: Path, pattern: str, why: str
) -> None:
    (repository / "out").symlink_to("/etc")
    (repository / "here").mkdir()
    (repository / "here" / "rows.csv").write_text("1\n")
    (repository / "here" / "linked").symlink_to(".")
    (repository / ".gitignore").write_text("/here/\n/out\n")
    git("add", ".gitignore", cwd=repository)
    person = Repository.open(repository)
    error = refused("INCLUDE_REFUSED", person.find_included, [pattern], 1_000)
    assert why in error.message
    assert [file.path for file in person.find_included(["/here/rows.csv"], 1_000)] == ["here/rows.csv"]

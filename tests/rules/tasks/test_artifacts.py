"""What names of artifacts mean."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.rules.tasks import artifacts

ROOT = Path("/project")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("out/plot.png", "file"),
        ("C: notes", "file"),
        ("commit:1", "commit"),
        ("https://example.org/a", "address"),
        ("s3://bucket/a", "address"),
    ],
)
def test_a_name_says_whether_it_is_a_file_a_commit_or_an_address(name: str, kind: str) -> None:
    assert artifacts.kind(name) == kind


def test_the_last_whole_commit_is_that_of_the_work() -> None:
    one, other = "a" * 40, "b" * 40
    assert artifacts.commit(["x", f"commit:{one}", f"commit:{other}", "commit:b", "commit:--all"]) == other
    assert artifacts.commit(["x", "commit:1"]) is None


@pytest.mark.parametrize(
    ("name", "place"),
    [("./a//b.txt", "a/b.txt"), ("/project/a", "a"), ("/elsewhere/a", None), ("/project", None), (".", None)],
)
def test_a_path_is_relative_to_the_directory(name: str, place: str | None) -> None:
    assert artifacts.place(name, ROOT) == place


@given(st.text(st.sampled_from("./ab\0") | st.characters(), max_size=20))
def test_no_name_leads_out_of_the_directory(name: str) -> None:
    place = artifacts.place(name, ROOT)
    if place is not None:
        path = PurePosixPath(place)
        assert not path.is_absolute()
        assert ".." not in path.parts
        assert path.parts
        assert "\0" not in place

"""The files that a sweep sends to other machines, and the values that come back."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from tests.conftest import git
from workbench.errors import Unavailable
from workbench.sweeps.dask import carrier, project_copy


def test_equal_files_make_equal_archives_without_what_git_ignores(repository: Path, tmp_path: Path) -> None:
    (repository / ".gitignore").write_text("*.env\n")
    (repository / "secret.env").write_text("TOKEN=1")
    (repository / "lib").mkdir()
    (repository / "lib" / "new.py").write_text("new = True\n")
    (repository / "lib" / "run.sh").write_text("#!/bin/sh\n")
    (repository / "lib" / "run.sh").chmod(0o755)
    (repository / "here").symlink_to("lib/new.py")
    (repository / "away").symlink_to("/etc/passwd")
    git("add", "lib/run.sh", cwd=repository)
    first = project_copy.pack(repository, 10_000, tmp_path / "first")
    os.utime(repository / "lib" / "new.py", (1, 1))
    assert project_copy.pack(repository, 10_000, tmp_path / "second").sha256 == first.sha256
    copy = tmp_path / "copy"
    project_copy.unpack(first.path, copy)
    tracked = set(git("ls-files", cwd=repository).splitlines())
    found = {str(path.relative_to(copy)) for path in copy.rglob("*") if not path.is_dir()}
    assert found == tracked | {".gitignore", "lib/new.py", "here"}
    assert (copy / "here").read_text() == "new = True\n"
    assert os.access(copy / "lib" / "run.sh", os.X_OK)


@pytest.mark.parametrize("name", ["../outside", "/outside"])
def test_an_archive_is_unpacked_nowhere_but_below(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "archive", "w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(tarfile.TarError, match="leads out"):
        project_copy.unpack(tmp_path / "archive", tmp_path / "copy")
    for path in ("../outside", "/outside", ""):
        with pytest.raises(Unavailable, match=r"^DASK_FILES_DAMAGED"):
            carrier.below(path, "tcp://worker:1")


def test_values_are_recorded_with_few_calls_at_the_steps_that_they_had() -> None:
    loop = [[step, float(step)] for step in range(25_000)]
    batches = [*carrier.batches({"loss": loop, "acc": loop, "sparse": [[0, 1.0], [10, "x"], [11, 2.0]]})]
    assert len(batches) == 5 + 2
    recorded: dict[str, list[list[object]]] = {}
    for first, metrics in batches:
        assert sum(map(len, metrics.values())) <= 10_000
        for name, values in metrics.items():
            recorded.setdefault(name, []).extend([first + at, value] for at, value in enumerate(values))
    assert recorded == {"loss": loop, "acc": loop, "sparse": [[0, 1.0], [10, "x"], [11, 2.0]]}

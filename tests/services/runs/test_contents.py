"""What artifacts contain is shown; nothing that is not recorded is ever opened."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from tests.services.runs.conftest import Lab
from workbench.errors import NotFound, Unavailable

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


@pytest.fixture
def project(lab: Lab) -> Path:
    """The project's directory."""
    return lab.workbench.settings.project


async def recorded(lab: Lab, path: Path, content: bytes) -> int:
    """A run with one artifact, which is called by the name of its file."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    run = (await lab.start())["id"]
    await lab.call("add_run_artifact", run_id=run, path=str(path))
    return int(run)


async def shown(lab: Lab, run: int, name: str) -> dict[str, Any]:
    """What an artifact contains."""
    return await lab.call("get_run_artifact", run_id=run, name=name)


async def test_a_picture_comes_whole(lab: Lab, project: Path) -> None:
    run = await recorded(lab, project / "out" / "plot.png", PNG)
    found = await shown(lab, run, "plot.png")
    assert (found["form"], found["picture_type"], found["changed"]) == ("picture", "image/png", False)
    assert base64.b64decode(found["data"]) == PNG


async def test_of_a_parquet_file_the_first_rows_are_shown(lab: Lab, project: Path) -> None:
    import duckdb

    path = project / "rows.parquet"
    duckdb.sql("SELECT range AS n, 'row ' || range AS word FROM range(250)").write_parquet(str(path))
    run = await recorded(lab, path, path.read_bytes())
    found = await shown(lab, run, "rows.parquet")
    assert (found["form"], found["columns"], found["rows"][1], found["cut"]) == (
        "table",
        ["n", "word"],
        ["1", "row 1"],
        True,
    )


async def test_a_file_that_pretends_to_be_parquet_is_only_named(lab: Lab, project: Path) -> None:
    run = await recorded(lab, project / "rows.parquet", b"PAR1\0\0")
    assert (await shown(lab, run, "rows.parquet"))["form"] == "file"


async def test_a_file_that_was_changed_since_says_so(lab: Lab, project: Path) -> None:
    run = await recorded(lab, project / "notes.md", b"# One")
    (project / "notes.md").write_bytes(b"# Two")
    found = await shown(lab, run, "notes.md")
    assert (found["text"], found["changed"]) == ("# Two", True)


async def test_what_is_not_recorded_is_not_found(lab: Lab, project: Path) -> None:
    run = await recorded(lab, project / "notes.md", b"# One")
    for name in ("README.md", "../notes.md", "/etc/passwd"):
        with pytest.raises(NotFound, match="ARTIFACT_NOT_FOUND"):
            await shown(lab, run, name)
    with pytest.raises(NotFound, match="RUN_NOT_FOUND"):
        await shown(lab, run + 1, "notes.md")


@pytest.mark.parametrize("replaced", ["out", "out/secret.txt"])
async def test_a_symbolic_link_in_place_of_what_was_recorded_is_not_followed(
    lab: Lab, project: Path, tmp_path: Path, replaced: str
) -> None:
    run = await recorded(lab, project / "out" / "secret.txt", b"mine")
    (project / replaced).rename(project / "moved")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / "secret.txt").write_text("theirs")
    (project / replaced).symlink_to(elsewhere if replaced == "out" else elsewhere / "secret.txt")
    with pytest.raises(Unavailable, match="ARTIFACT_UNREADABLE"):
        await shown(lab, run, "secret.txt")


async def test_a_pipe_in_place_of_a_file_is_not_read(lab: Lab, project: Path) -> None:
    run = await recorded(lab, project / "log.txt", b"text")
    (project / "log.txt").unlink()
    os.mkfifo(project / "log.txt")
    with pytest.raises(Unavailable, match="not a regular file"):
        await shown(lab, run, "log.txt")


async def test_a_file_that_is_gone_says_so(lab: Lab, project: Path) -> None:
    run = await recorded(lab, project / "log.txt", b"text")
    (project / "log.txt").unlink()
    with pytest.raises(Unavailable, match="ARTIFACT_UNREADABLE"):
        await shown(lab, run, "log.txt")

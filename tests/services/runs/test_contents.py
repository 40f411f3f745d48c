"""The contents of artifacts are shown; no unrecorded file is ever opened."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.services.runs.conftest import Lab
from workbench.errors import NotFound, Unavailable

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


@pytest.fixture
def project(lab: Lab) -> Path:
    return lab.workbench.settings.project


async def record_file(lab: Lab, path: Path, content: bytes) -> int:
    """A run with one artifact, which is called by the name of its file."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    run = (await lab.start())["id"]
    await lab.call("add_run_artifact", run_id=run, path=str(path))
    return int(run)


async def shown(lab: Lab, run: int, name: str) -> dict[str, Any]:
    return await lab.call("get_run_artifact", run_id=run, name=name)


async def test_a_picture_is_shown_whole_and_a_parquet_file_by_its_first_rows(lab: Lab, project: Path) -> None:
    picture = await shown(lab, await record_file(lab, project / "out" / "plot.png", PNG), "plot.png")
    assert (picture["form"], picture["picture_type"], picture["changed"]) == ("picture", "image/png", False)
    assert base64.b64decode(picture["data"]) == PNG
    path = project / "rows.parquet"
    duckdb.sql("SELECT range AS n, 'row ' || range AS word FROM range(250)").write_parquet(str(path))
    table = await shown(lab, await record_file(lab, path, path.read_bytes()), path.name)
    assert (table["form"], table["columns"]) == ("table", ["n", "word"])
    assert (table["rows"][1], table["cut"]) == (["1", "row 1"], True)
    pretends = await record_file(lab, path, b"PAR1\0\0")
    assert (await shown(lab, pretends, path.name))["form"] == "file"


async def test_a_changed_replaced_or_removed_artifact_is_reported(lab: Lab, project: Path) -> None:
    file = project / "notes.md"
    run = await record_file(lab, file, b"# One")
    for name in ("README.md", "../notes.md", "/etc/passwd"):
        with pytest.raises(NotFound, match="ARTIFACT_NOT_FOUND"):
            await shown(lab, run, name)
    with pytest.raises(NotFound, match="RUN_NOT_FOUND"):
        await shown(lab, run + 1, "notes.md")
    file.write_bytes(b"# Two")
    found = await shown(lab, run, "notes.md")
    assert (found["text"], found["changed"]) == ("# Two", True)
    file.unlink()
    with pytest.raises(Unavailable, match="ARTIFACT_UNREADABLE"):
        await shown(lab, run, "notes.md")
    os.mkfifo(file)
    with pytest.raises(Unavailable, match="not a regular file"):
        await shown(lab, run, "notes.md")


@pytest.mark.parametrize("replaced", ["out", "out/secret.txt"])
async def test_a_symbolic_link_in_place_of_an_artifact_is_not_followed(
    lab: Lab, project: Path, tmp_path: Path, replaced: str
) -> None:
    run = await record_file(lab, project / "out" / "secret.txt", b"mine")
    (project / replaced).rename(project / "moved")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / "secret.txt").write_text("theirs")
    (project / replaced).symlink_to(elsewhere if replaced == "out" else elsewhere / "secret.txt")
    with pytest.raises(Unavailable, match="ARTIFACT_UNREADABLE"):
        await shown(lab, run, "secret.txt")

"""An operation on a full disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests import given
from tests.small_disk import fill, small_disk
from workbench.app import Workbench

pytestmark = pytest.mark.anyio


async def test_an_operation_that_cannot_write_a_file_says_that_the_disk_has_no_space(
    tmp_path: Path, workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def whoami(ctx: object) -> None:
        (disk / "log").write_text("a line")

    monkeypatch.setitem(workbench.catalogue, "whoami", replace(workbench.catalogue["whoami"], fn=whoami))
    with small_disk(tmp_path / "disk", 1) as disk:
        fill(disk, 0)
        error = await given.refuses("DISK_FULL", workbench.call("whoami"))
    assert "Free some space" in error.message

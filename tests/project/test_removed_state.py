"""State that is removed, or moved away, under the process that serves it: said at once, and nothing is left there."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from kernel_ext.session import WorkbenchSession
from tests import given
from workbench.errors import Unavailable
from workbench.shells import headless
from workbench.state.settings import Settings

WAYS: dict[str, Callable[[Path], object]] = {
    "removed": lambda project: shutil.rmtree(project / ".aiswarm"),
    "moved": lambda project: project.rename(project.with_name("moved")),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_notebook_whose_projects_state_is_gone_is_told_so_and_leaves_nothing_in_its_place(
    repository: Path, way: str
) -> None:
    wb = WorkbenchSession()
    wb.start(repository, 0)
    try:
        wb.call("create_task", title="before", persona_id="tester")
        WAYS[way](repository)
        given.refused("PROJECT_MOVED", wb.call, "create_task", title="after", persona_id="tester")
        given.refused("PROJECT_MOVED", list, wb.tasks)
        given.refused("PROJECT_MOVED", wb.sql, "SELECT * FROM tasks")
        given.refused("PROJECT_MOVED", wb.record, loss=0.5)
    finally:
        wb.stop()
    assert not (repository / ".aiswarm").exists()
    if way == "removed":
        assert "serves" in wb.start(repository, 0).message
        assert wb.call("list_tasks")["tasks"] == []
        wb.stop()


def test_servers_of_a_terminal_end_and_say_so_when_the_state_stays_away(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headless, "LOOK_SECONDS", 0.01)

    async def served() -> None:
        serving = asyncio.create_task(headless._serve(settings, 0, False, lambda _: nullcontext()))
        await given.appeared(settings.server_file)
        away = settings.home.rename(settings.home.with_name("away"))
        await given.until(serving.done)
        assert away.exists()
        await serving

    with pytest.raises(Unavailable, match="PROJECT_MOVED"):
        asyncio.run(served())
    assert not settings.home.exists()

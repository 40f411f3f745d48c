"""Every view and every column is described in the database, in the manual and by the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.generator.pages import REFERENCE
from tests.conftest import Command
from tests.given import refused
from workbench.analytics import views
from workbench.analytics.views import VIEWS

MANUAL = REFERENCE.read_text("utf-8")


def test_every_view_and_every_column_has_a_comment() -> None:
    found = views.described()
    assert [view.name for view in found] == list(VIEWS)
    assert sorted(path.stem for path in Path(views.__file__).parent.rglob("*.sql")) == sorted(VIEWS)
    assert [view.name for view in found if not view.meaning.endswith(".")] == []
    columns = [(view.name, column.name, column.meaning) for view in found for column in view.columns]
    assert len(columns) > 100
    assert [(view, column) for view, column, meaning in columns if not meaning.endswith(".")] == []


def test_the_manual_has_every_column() -> None:
    for view in views.described():
        section = MANUAL.split(f"### `{view.name}`")[1].partition("\n#")[0]
        assert view.meaning in section
        rows = [f"| `{column.name}` | {column.type.lower()} | {column.meaning} |" for column in view.columns]
        assert [row for row in rows if row not in section] == []


def test_an_unknown_view_is_an_error_that_names_the_others() -> None:
    assert views.find("waits").columns[0].name == "task_id"
    said = refused("VIEW_NOT_FOUND", views.find, "task").message
    assert "no view 'task'. Did you mean tasks? Available: held_back, tasks, attempts, checks, leases" in said


@pytest.mark.long
@pytest.mark.anyio
async def test_the_command_views_lists_and_shows_views(command: Command) -> None:
    listed = await command("views")
    assert (listed.status, listed.err) == (0, "")
    assert [line.split()[0] for line in listed.out.splitlines()[1 : 1 + len(VIEWS)]] == list(VIEWS)
    one = json.loads((await command("views", "gates", "--json")).out)
    assert [column["name"] for column in one["columns"]][:3] == ["approval_id", "worktree", "command"]
    refused = await command("views", "nothing")
    assert (refused.status, refused.err.split(":")[0]) == (1, "VIEW_NOT_FOUND")

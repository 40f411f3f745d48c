"""Views that a person saves: kept under a name for each table, renamed, replaced, deleted."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound
from workbench.services.saved_views import MOST
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def save(workbench: Workbench, name: str, area: str = "tasks", **how: Any) -> dict[str, Any]:
    """Save a view."""
    return await workbench.call("save_view", area=area, name=name, state={"text": name}, **how)


async def names(workbench: Workbench) -> list[tuple[str, str]]:
    """The saved views, by table and name."""
    return [(view["area"], view["name"]) for view in (await workbench.call("list_saved_views"))["views"]]


async def test_views_are_listed_by_table_and_name_and_survive_a_restart(settings: Settings) -> None:
    async with Workbench.open(settings) as workbench:
        for name, area in (("Urgent", "tasks"), ("failed", "tasks"), ("Mine", "agents")):
            await save(workbench, name, area)
    async with Workbench.open(settings) as workbench:
        assert await names(workbench) == [("agents", "Mine"), ("tasks", "failed"), ("tasks", "Urgent")]
        (view,) = (await workbench.call("list_saved_views", area="agents"))["views"]
        assert (view["area"], view["name"], view["state"]) == ("agents", "Mine", {"text": "Mine"})


async def test_a_view_is_replaced_only_when_asked_renamed_and_deleted(workbench: Workbench) -> None:
    mine, other = await save(workbench, "Mine"), await save(workbench, "Other")
    with pytest.raises(Conflict, match="VIEW_EXISTS"):
        await save(workbench, "Mine")
    again = await workbench.call("save_view", area="tasks", name="Mine", state={"text": "other"}, replace=True)
    assert (again["id"], again["state"]) == (mine["id"], {"text": "other"})
    with pytest.raises(Conflict, match="VIEW_EXISTS"):
        await workbench.call("rename_saved_view", view_id=mine["id"], name="Other")
    assert (await workbench.call("rename_saved_view", view_id=mine["id"], name="Yours"))["name"] == "Yours"
    await workbench.call("delete_saved_view", view_id=other["id"])
    await save(workbench, "Yours", "agents")
    assert await names(workbench) == [("agents", "Yours"), ("tasks", "Yours")]
    for op, more in (("rename_saved_view", {"name": "x"}), ("delete_saved_view", {})):
        with pytest.raises(NotFound, match="VIEW_NOT_FOUND"):
            await workbench.call(op, view_id=other["id"], **more)


async def test_views_are_limited_in_size_and_number(workbench: Workbench) -> None:
    with pytest.raises(BadInput, match="TOO_LARGE"):
        await workbench.call("save_view", area="tasks", name="x", state={"text": "x" * 20_000})
    for number in range(MOST):
        await save(workbench, f"{number}")
    with pytest.raises(Conflict, match="TOO_MANY_VIEWS"):
        await save(workbench, "one more")
    await save(workbench, "0", replace=True)
    await save(workbench, "another table", "agents")

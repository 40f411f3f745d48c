"""Views of tables that a person keeps: search, filters and sorting under a name, shared by all panels of a project."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import BadInput, Conflict, Hint, NotFound
from workbench.model import Int64, Level, Micros, Wire
from workbench.ops import Ctx, Ok, op
from workbench.rules.naming import Name
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

MOST = 100
"""The most views of one table."""
LARGEST = 20_000
"""The most characters of a state, as JSON."""

Area = Annotated[
    str, Field(pattern=r"^[a-z][a-z_]{0,49}$", description="The table that it is a view of, such as tasks.")
]
ViewId = Annotated[Int64, Field(description="The view's id; see list_saved_views.")]


class SavedView(Wire):
    """A view of a table. `state`: its search, filters and sorting, as the panel understands them."""

    id: int
    area: str
    name: str
    state: dict[str, Any]
    saved_by: str
    saved_at: Micros


class SavedViews(Wire):
    """Saved views, by table and name."""

    views: list[SavedView]


@op(allow=Level.OPERATOR, reads=True, tool=False, command="call list_saved_views", refreshed_by="saved_view")
async def list_saved_views(
    ctx: Ctx, area: Annotated[Area | None, Field(description="Only views of this table.")] = None
) -> SavedViews:
    """List the saved views of tables: search, filters and sorting under a name."""
    rows = await ctx.read(lambda tx: tx.all(SQL.all, area=area))
    return SavedViews(views=[_view(row) for row in rows])


@op(allow=Level.OPERATOR, tool=False)
async def save_view(
    ctx: Ctx,
    area: Area,
    name: Name,
    state: Annotated[dict[str, Any], Field(description="Its search, filters and sorting.")],
    replace: Annotated[bool, Field(description="Replace a view of the same name.")] = False,
) -> SavedView:
    """Save a view of a table under a name."""
    text = json.dumps(state)
    if len(text) > LARGEST:
        raise BadInput("TOO_LARGE", f"A view has at most {LARGEST} characters.", limit=LARGEST, size=len(text))

    def change(tx: Tx) -> SavedView:
        if tx.one(SQL.named, area=area, name=name):
            if not replace:
                raise _exists(name)
        else:
            _require_room(tx, area)
        return put(tx, area, name, text)

    return await ctx.write(change)


@op(allow=Level.OPERATOR, tool=False)
async def rename_saved_view(ctx: Ctx, view_id: ViewId, name: Name) -> SavedView:
    """Give a saved view another name."""

    def change(tx: Tx) -> SavedView:
        row = _require(tx, view_id)
        other = tx.one(SQL.named, area=row["area"], name=name)
        if other and other["id"] != view_id:
            raise _exists(name)
        if name != row["name"]:
            tx.run(SQL.rename, id=view_id, name=name)
            tx.emit("saved_view.renamed", f"saved_view:{view_id}", area=row["area"], name=name, before=row["name"])
        return _view(_require(tx, view_id))

    return await ctx.write(change)


@op(allow=Level.OPERATOR, destructive=True, tool=False)
async def delete_saved_view(ctx: Ctx, view_id: ViewId) -> Ok:
    """Delete a saved view."""

    def change(tx: Tx) -> Ok:
        row = _require(tx, view_id)
        tx.run(SQL.delete, id=view_id)
        deleted = {"area": row["area"], "name": row["name"], "state": json.loads(row["state"])}
        tx.emit("saved_view.deleted", f"saved_view:{view_id}", **deleted)
        return Ok()

    return await ctx.write(change)


def put(tx: Tx, area: str, name: str, state: str, **data: Any) -> SavedView:
    """Store a view, in place of one of the same name; `state` is JSON, `data` is added to the event."""
    row = tx.one(SQL.put, area=area, name=name, state=state, by=tx.actor, now=tx.now)
    assert row is not None
    tx.emit("saved_view.saved", f"saved_view:{row['id']}", area=area, name=name, **data)
    return _view(_require(tx, row["id"]))


def restore(tx: Tx, area: str, name: str, state: str, **data: Any) -> None:
    """Store a view again that was deleted.

    Raises:
        Conflict: ``VIEW_EXISTS``.
    """
    if tx.one(SQL.named, area=area, name=name):
        raise _exists(name)
    put(tx, area, name, state, **data)


def _require_room(tx: Reader, area: str) -> None:
    count = tx.one(SQL.count, area=area)
    if count and count["n"] >= MOST:
        raise Conflict("TOO_MANY_VIEWS", f"There are {MOST} views of {area}. Delete one first.", limit=MOST)


def _require(tx: Reader, view_id: int) -> Row:
    row = tx.one(SQL.get, id=view_id)
    if row is None:
        raise NotFound("VIEW_NOT_FOUND", f"There is no saved view {view_id}.", Hint("list_saved_views"))
    return row


def _exists(name: str) -> Conflict:
    return Conflict("VIEW_EXISTS", f"A view is already named {name!r}. Choose another name, or replace it.")


def _view(row: Row) -> SavedView:
    return SavedView.model_validate({**row, "state": json.loads(row["state"])})

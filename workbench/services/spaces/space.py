"""Spaces (projects, sessions and teams): names, visibility, search, pages, deletion and restoration.

A name is unique among the spaces of a kind that are in the same parent and not deleted. The contents of a deleted space
count as deleted until it is restored. The queries are in `space.sql`, which the file of each kind completes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Literal, TypeVar

from workbench.errors import BadInput, Conflict
from workbench.model import Access, Level, Wire, uuid7
from workbench.ops import Caller, Command
from workbench.rules.naming import NOTHING, like_pattern, resolve_ref
from workbench.rules.wire import paging
from workbench.services.access import permissions
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import Queries

M = TypeVar("M", bound=Wire)


class SpaceChange(StrEnum):
    """A change of a space; it emits the event ``<noun>.<change>``."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"
    RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class SpaceKind(Generic[M]):
    """A kind of space: its nouns, model and queries, and the data that its events take from a row."""

    noun: str
    resource: Literal["projects", "sessions", "teams"]
    parent: str | None
    model: type[M]
    sql: Queries
    event: Callable[[Row], dict[str, Any]]

    def of(self, row: Row) -> M:
        """A space from its row."""
        return self.model.model_validate({name: row[name] for name in self.model.model_fields})


@dataclass(frozen=True, slots=True)
class SpaceFilter:
    """Filters for spaces of a kind. `parent` is an id; `since` selects what changed after it (microseconds UTC)."""

    search: str | None = None
    deleted: bool = False
    since: int | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class SpacePage(Generic[M]):
    """One page of spaces, the number of all that match, and the cursor of the next page."""

    spaces: Sequence[M]
    total: int
    next_cursor: str | None


def edits(noun: str) -> tuple[Command, ...]:
    """The commands that change a space of a kind."""
    ref = f"{noun}_id"
    changed = f"Changed the {{changed}} of the {noun} {{name}}."
    renamed = f"The {noun} is now named {{name}}."
    return (
        Command(f"{noun}s edit {ref.upper()}", changed),
        Command(f"{noun}s rename {ref.upper()} NAME", renamed, options=(), help=f"Rename a {noun}."),
    )


def find(
    tx: Reader, kind: SpaceKind[M], ref: str, *, deleted: bool = False, visible_to: Caller | None = None
) -> Row | None:
    """The row of the space with an id or name, if it is visible to a caller.

    Args:
        deleted: look among the deleted spaces instead of the others.
        visible_to: the caller; None sees every space.

    Raises:
        BadInput: ``AMBIGUOUS_NAME``.
    """
    return resolve_ref(tx.all(kind.sql.find, _visible(visible_to, deleted), ref=ref), ref, kind.noun)


def page(
    tx: Reader, kind: SpaceKind[M], caller: Caller, filters: SpaceFilter, limit: int, cursor: str | None
) -> SpacePage[M]:
    """One page of the spaces that are visible to a caller, oldest first.

    Raises:
        BadInput: ``BAD_CURSOR``. Refused: ``NOT_PERMITTED``, ``TOOL_DISABLED``.
    """
    permissions.check(tx, caller, "read", kind.resource)
    chosen = {"parent": filters.parent, "search": like_pattern(filters.search), "since": filters.since}
    values = _visible(caller, filters.deleted) | chosen
    rows = tx.all(kind.sql.list, values | paging.after(cursor), limit=limit + 1)
    total = tx.one(kind.sql.count, values)
    assert total is not None
    page_rows, following = paging.cut(rows, limit, "created_at", "id")
    return SpacePage([kind.of(row) for row in page_rows], total["n"], following)


def create(
    tx: Tx,
    kind: SpaceKind[M],
    parent: str | None,
    name: str,
    description: str,
    *,
    space_id: str | None = None,
    at: int | None = None,
) -> M:
    """Create a space in a parent (an id), or in none.

    Args:
        space_id, at: its id and its time (microseconds UTC) if it was created elsewhere.

    Raises:
        Conflict: ``NAME_TAKEN``. BadInput: ``BAD_NAME``.
    """
    _check_name(kind, name)
    require_free(tx, kind, parent, name)
    new_id = space_id or str(uuid7(tx.now))
    tx.run(kind.sql.add, id=new_id, parent=parent, name=name, description=description, now=tx.now if at is None else at)
    return _record_change(tx, kind, SpaceChange.CREATED, new_id, name=name)


def update(tx: Tx, kind: SpaceKind[M], row: Row, name: str | None, description: str | None) -> M:
    """Change the name or the description of a space; None leaves them as they are.

    Raises:
        Conflict: ``NAME_TAKEN``. BadInput: ``BAD_NAME``.
    """
    if name is not None and name != row["name"]:
        _check_name(kind, name)
        require_free(tx, kind, row["parent_id"], name, row["id"])
    columns = {"name": name, "description": description}
    changes = sorted(field for field, value in columns.items() if value is not None)
    if not changes:
        return kind.of(row)
    tx.run(kind.sql.update, columns, id=row["id"], now=tx.now)
    return _record_change(tx, kind, SpaceChange.UPDATED, row["id"], changes=changes)


def delete(tx: Tx, kind: SpaceKind[M], row: Row) -> M:
    """Mark a space, and thereby its contents, as deleted."""
    tx.run(kind.sql.set_deleted, id=row["id"], at=tx.now)
    return _record_change(tx, kind, SpaceChange.DELETED, row["id"])


def restore(tx: Tx, kind: SpaceKind[M], row: Row) -> M:
    """Restore a deleted space whose parent is not deleted.

    Raises:
        Conflict: ``NAME_TAKEN``.
    """
    require_free(tx, kind, row["parent_id"], row["name"])
    tx.run(kind.sql.set_deleted, id=row["id"], at=None)
    return _record_change(tx, kind, SpaceChange.RESTORED, row["id"])


def require_free(tx: Reader, kind: SpaceKind[M], parent: str | None, name: str, besides: str | None = None) -> None:
    """Check that no space in a parent has a name, except the one with the id `besides`.

    Raises:
        Conflict: ``NAME_TAKEN``.
    """
    if any(row["id"] != besides for row in tx.all(kind.sql.named, parent=parent, name=name)):
        where = f" in this {kind.parent}" if parent else f" without a {kind.parent}" if kind.parent else ""
        taken = f"There is already a {kind.noun} {name!r}{where}."
        raise Conflict("NAME_TAKEN", f"{taken} Choose another name, or rename that one.")


def _check_name(kind: SpaceKind[M], name: str) -> None:
    if name.lower() in NOTHING:
        raise BadInput("BAD_NAME", f"A {kind.noun} cannot be named {name!r}, which is taken for none. Choose another.")


def _record_change(tx: Tx, kind: SpaceKind[M], change: SpaceChange, space_id: str, **data: object) -> M:
    row = find(tx, kind, space_id, deleted=change is SpaceChange.DELETED)
    assert row is not None, "it was changed in this transaction"
    tx.emit(f"{kind.noun}.{change}", f"{kind.noun}:{space_id}", **kind.event(row), **data)
    return kind.of(row)


def _visible(caller: Caller | None, deleted: bool) -> dict[str, Any]:
    """Query parameters for the spaces a caller sees: the operator (or None) all of them, an agent no deleted ones."""
    agent: dict[str, str | None] = {"session": None, "team": None, "whole_session": None}
    everything = caller is None or caller.level is Level.OPERATOR
    if caller is not None and not deleted:
        whole = caller.session if caller.access is Access.SESSION_LEVEL else None
        agent = {"session": caller.session, "team": caller.team, "whole_session": whole}
    return {**agent, "everything": int(everything), "deleted": int(deleted)}

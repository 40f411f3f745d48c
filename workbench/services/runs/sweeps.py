"""Sweeps: a notebook that is run with many parameters. Each name is used once; a sweep is resumed only unchanged."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Conflict, Hint, NotFound
from workbench.model import LARGEST_INT, Json, Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.rules.naming import like_pattern
from workbench.rules.sweeps.specification import check_name
from workbench.rules.wire import paging
from workbench.rules.wire.paging import Cursor, Limit, Search
from workbench.services.runs.ending import settle_before_reading
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


class Sweep(Wire):
    """A sweep: what was asked for, and when."""

    id: int
    name: str
    notebook: str
    notebook_sha256: str
    specification: dict[str, Json]
    created_at: Micros
    created_by: str


class StartedSweep(Sweep):
    """A sweep. `resumed`: it was there before."""

    resumed: bool


class ListedSweep(Sweep):
    """A sweep with the number of its runs in each state. `specification.runs` is how many it has in all."""

    completed: int
    failed: int
    running: int
    lost: int


class Sweeps(Wire):
    """Sweeps, newest first. `next_cursor` is null on the last page."""

    sweeps: list[ListedSweep]
    next_cursor: str | None


@op(allow=Level.OPERATOR, tool=False)
async def start_sweep(
    ctx: Ctx,
    name: Annotated[str, Field(max_length=50, description="Its name: a-z, 0-9, - and _.")],
    notebook: Annotated[str, Field(max_length=1_000, description="Path of its notebook.")],
    notebook_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="Hash of the notebook's content.")],
    specification: Annotated[dict[str, Json], Field(description="What is run.")],
    resume: Annotated[bool, Field(description="Go on with the sweep of this name.")] = False,
    changed: Annotated[bool, Field(description="Go on although the notebook has changed.")] = False,
) -> StartedSweep:
    """Record that a sweep starts, or is resumed with the same notebook and specification.

    The sweep keeps the hash that it began with; the event `sweep.resumed` has that of a changed notebook.
    """
    facts = {"notebook": notebook, "notebook_sha256": notebook_sha256, "specification": json.dumps(specification)}
    check_name(name)

    def change(tx: Tx) -> StartedSweep:
        before = tx.one(SQL.by_name, name=name)
        if before is None and resume:
            raise NotFound("SWEEP_NOT_FOUND", f"There is no sweep {name} to go on with.", Hint("list_sweeps"))
        if before is None:
            tx.run(SQL.add, facts, name=name, now=tx.now, by=tx.actor)
        elif not resume:
            raise Conflict(
                "SWEEP_EXISTS", f"There is a sweep {name}. Add --resume to go on with it, or --name another."
            )
        else:
            _require_same(before, None if changed else notebook_sha256, specification)
        row = tx.one(SQL.by_name, name=name)
        assert row is not None
        kind = "sweep.started" if before is None else "sweep.resumed"
        new_hash = {} if row["notebook_sha256"] == notebook_sha256 else {"notebook_sha256": notebook_sha256}
        tx.emit(kind, f"sweep:{row['id']}", name=name, notebook=notebook, runs=specification.get("runs"), **new_hash)
        return StartedSweep(**_facts(row), resumed=before is not None)

    return await ctx.write(change)


@op(allow=Level.PLANNER, reads=True, tool=False, command="runs sweeps")
async def list_sweeps(ctx: Ctx, search: Search = None, limit: Limit = 50, cursor: Cursor = None) -> Sweeps:
    """List sweeps with how many of their runs completed, failed and are running. `search` searches names."""
    await settle_before_reading(ctx)
    [after] = paging.decode(cursor, int) if cursor else (LARGEST_INT,)
    values = {"after": after, "search": like_pattern(search), "limit": limit + 1}
    shown, following = paging.cut(await ctx.read(lambda tx: tx.all(SQL.list, values)), limit, "id")
    return Sweeps(sweeps=[ListedSweep(**_facts(row)) for row in shown], next_cursor=following)


def _require_same(before: Row, notebook_sha256: str | None, specification: dict[str, Any]) -> None:
    """Refuse to go on with a sweep with another notebook or other values.

    Args:
        notebook_sha256: None: the notebook may be another one.

    Raises:
        Conflict: ``SWEEP_CHANGED``.
    """
    name = before["name"]
    if notebook_sha256 not in (None, before["notebook_sha256"]):
        raise Conflict(
            "SWEEP_CHANGED",
            f"The notebook of the sweep {name} changed since it began. To go on with it as it is now, add --changed: "
            "runs that completed stay, and the others record its new hash. To start another one, use --name.",
        )
    if json.loads(before["specification"]) != specification:
        raise Conflict(
            "SWEEP_CHANGED",
            f"The sweep {name} began with other values. Named without a notebook and values, it goes on as it was "
            "begun with --resume; to start another one, give it --name another.",
        )


def _facts(row: Row) -> dict[str, Any]:
    return {**row, "specification": json.loads(row["specification"])}

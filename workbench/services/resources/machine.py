"""What the machines of a project have that tasks can need: this one, and those elsewhere, as they say themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from workbench.confinement import lending
from workbench.model import Int64, Wire
from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty, prepares
from workbench.state.machine import Machine
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

ELSEWHERE = "elsewhere:"
"""Before the name of a machine without a clone: one that has a clone may be called the same."""


class StatedResource(Wire):
    """Something that tasks can need, as a machine without a clone says that it has it, and lends it."""

    name: str = Field(max_length=100, pattern=r"^[a-z0-9][a-z0-9_:-]*$", description="gpu, cpu, memory, or another.")
    device: str = Field("", max_length=100, pattern=r"^[\w.:-]*$", description="Which GPU; empty: it is counted.")
    amount: Int64 = Field(ge=0, description="How much there is; memory in bytes.")
    vram: Int64 | None = Field(None, ge=0, description="The memory of a GPU in bytes; null: it is not known.")
    problem: Annotated[str, Field(max_length=300)] | None = Field(None, description="Why it cannot be lent.")


def elsewhere(name: str) -> Machine:
    """A machine without a clone."""
    return Machine(ELSEWHERE + name, is_alone=False)


def of_caller(tx: Reader, ctx: Ctx) -> Machine:
    """The machine whose things the caller's attempts hold: the one without a clone that enlisted it, or this one."""
    row = tx.one(SQL.enlisted_by, agent=ctx.caller.agent)
    return elsewhere(row["machine"]) if row else ctx.local.machine


@prepares
async def take_first_stock(ctx: Ctx) -> None:
    """Record what there is."""
    await take_stock(ctx)


@duty("looking for resources", 10.0)
async def take_stock(ctx: Ctx) -> None:
    """Record what there is, if that has changed: what is held meanwhile is held until its attempt ends."""
    here = ctx.local.machine
    rows = await asyncio.to_thread(lambda: list(lending.rows(ctx.settings)))
    if await ctx.read(lambda tx: _changed(tx, here.only, _of(here, rows))):
        await ctx.of(SYSTEM).write(lambda tx: state(tx, here, rows))


def state(tx: Tx, here: Machine, rows: Sequence[Mapping[str, Any]]) -> None:
    """Record what there is on a machine: what is held meanwhile is held until its attempt ends."""
    now = _of(here, rows)
    if changed := _changed(tx, here.only, now):
        tx.run(SQL.forget, machine=here.only)
        tx.many(SQL.add, now)
        for name in changed:
            tx.emit("resource.changed", f"resource:{name}")


def _of(here: Machine, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "machine": here.name} for row in rows]


def _changed(tx: Reader, on: str | None, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of what there is otherwise than was recorded."""
    before = [dict(row) for row in stored(tx, on)]
    return sorted({row["name"] for row in [*rows, *before] if not (row in rows and row in before)})


def forget(tx: Tx, name: str) -> None:
    """Forget what a machine without a clone has."""
    tx.run(SQL.forget, machine=ELSEWHERE + name)


def stored(tx: Reader, on: str | None) -> list[Row]:
    """What there is on a machine, as it was recorded; None: on all that have a clone."""
    return tx.all(SQL.list, machine=on)


def near(tx: Reader) -> list[str | None]:
    """The machines that have a clone, as queries are limited to them."""
    names = [name for name in _names(tx) if not is_far(name)]
    return [*names] if len(names) > 1 else [None]


def far(tx: Reader) -> list[str | None]:
    """The machines without a clone that have said what they have."""
    return [name for name in _names(tx) if is_far(name)]


def is_far(on: str | None) -> bool:
    """Whether a machine has no clone."""
    return on is not None and on.startswith(ELSEWHERE)


def _names(tx: Reader) -> list[str]:
    return [row["machine"] for row in tx.all(SQL.machines)]

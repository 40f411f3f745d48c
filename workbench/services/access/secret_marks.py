"""Tells every process of the project which values are secret in one of them, by keyed hashes in the store."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence

from workbench.ops import Ctx
from workbench.ops.duties import duty, on_foreign, prepares
from workbench.rules.secrets.marks import Mark
from workbench.store.base import Row, Tx
from workbench.store.queries import beside
from workbench.trust.known_secrets import MOST

SQL = beside(__file__)
LEARNED = "secret.learned"


async def learn(ctx: Ctx, values: Collection[str]) -> None:
    """Mask these values from now on, in every process of the project. Call it before they are used.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE`` and others of the store: others cannot learn them, so do not use them.
    """
    ctx.secrets.add(values)
    if fresh := ctx.secrets.unmarked(values):
        marks = await asyncio.to_thread(ctx.secrets.marks, fresh)
        await ctx.write(lambda tx: _record(tx, marks), durable=False)
        ctx.secrets.marked(fresh)


@prepares
async def load(ctx: Ctx) -> None:
    """Learn what other processes have recorded."""
    ctx.secrets.is_outdated = False
    rows = await ctx.read(lambda tx: tx.all(SQL.known))
    if rows:
        await asyncio.to_thread(ctx.secrets.know, [Mark(**row) for row in rows])


@on_foreign
def note(ctx: Ctx, events: Sequence[Row]) -> None:
    """Note that another process has recorded more."""
    ctx.secrets.is_outdated |= any(event["kind"] == LEARNED for event in events)


@duty("learning the secrets of other processes", 5.0, serving=False, wakes=True)
async def refresh(ctx: Ctx) -> None:
    """Learn what another process has recorded since."""
    if ctx.secrets.is_outdated:
        await load(ctx)


def _record(tx: Tx, marks: Iterable[Mark]) -> None:
    """Record marks; the newest `MOST` are kept, as many as values are known in one process."""
    is_news = any(tx.one(SQL.get, mark=mark.mark) is None for mark in marks)
    tx.many(SQL.record, [{**mark._asdict(), "now": tx.now} for mark in marks])
    tx.run(SQL.drop_oldest, most=MOST - 1)
    if is_news:
        tx.emit("secret.learned", "secret:project")

"""What there is of scarce things, who holds what, and what waits for what."""

from __future__ import annotations

import json
from asyncio import to_thread
from collections.abc import Collection, Iterator
from typing import ClassVar

from workbench.model import Level, Micros, Wire
from workbench.ops import Columns, Command, Ctx, RestRoute, op
from workbench.rules.needs import ALONE, GPU, Needs, Stock, amount_of, told
from workbench.rules.secrets.executed import GivenText
from workbench.services.resources import leases, machine
from workbench.store.base import Reader, Row
from workbench.store.queries import beside
from workbench.trust.withheld import set_but_not_trusted

SQL = beside(__file__)

SHOWN_TASKS = 500
NONE = "there is none, and tasks need it"


class ResourceHolder(Wire):
    """An attempt that holds something, or an agent that has a GPU for itself (`task_id` is null)."""

    agent_id: str
    task_id: int | None
    title: GivenText | None
    attempt: int | None
    amount: int
    since: Micros | None


class ResourceInfo(Wire):
    """Something scarce, of this machine or of one without a clone, `elsewhere:NAME`.

    `there`, `held`, `held_by` and `awaited_by` say in words what `amount`, in bytes, `holders` and `waiting` are: the
    tasks that are ready and need more of it than is free. `problem`: why it cannot be lent.
    """

    machine: str
    name: str
    device: str | None
    amount: int
    vram: int | None
    there: str
    held: str
    problem: str | None
    holders: list[ResourceHolder]
    held_by: str
    waiting: list[int]
    awaited_by: str


class WaitingTask(Wire):
    """A task that is ready, with what it needs, and why it is not begun, in words. `is_there`: the project has that."""

    task_id: int
    title: GivenText
    needs: str
    waits_for: str
    is_there: bool


class Resources(Wire):
    """What there is, and the tasks that wait for it, those of the highest priority first."""

    SHOWN: ClassVar = Columns(
        "resources", "machine name device there held held_by awaited_by problem", "There is nothing."
    )

    resources: list[ResourceInfo]
    waiting: list[WaitingTask]


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command=Command("resources"),
    rest=RestRoute("GET", "/resources", rows="resources"),
    refreshed_by="resource",
)
async def list_resources(ctx: Ctx) -> Resources:
    """List what tasks can need here, and on machines elsewhere that lend it: GPUs, processors, memory, licences.

    Each with who holds it, and which tasks wait for it.
    """

    def question(tx: Reader) -> Resources:
        here = ctx.local.machine.only
        places = [here, *machine.far(tx)]
        found = [leases.waits(tx, ctx.settings, on) for on in places]
        unmet = json.dumps(sorted({text for one in found for text in json.loads(one.unmet)}))
        rows = tx.all(SQL.ready, unmet=unmet, alone=max(one.alone for one in found), limit=SHOWN_TASKS)
        stated = {row["task_id"]: row["needs"] for row in rows}
        waiting = [one for row in rows if (one := _waiting(tx, ctx, row))]
        needs = {one.task_id: leases.read(stated[one.task_id]) for one in waiting}
        done_on = {task_id: leases.places(tx, task_id) for task_id in needs}
        named = {row["name"] for on in places for row in machine.stored(tx, on)}
        shown: list[ResourceInfo] = []
        for on in places:
            of_it = {task_id: needs[task_id] for task_id, where in done_on.items() if _is_among(on, where)}
            shown += _resources(tx, ctx, on, of_it, named)
        return Resources(resources=shown, waiting=waiting)

    found = await ctx.read(question)
    if not any(one.problem == NONE for one in found.resources):
        return found
    stated = await to_thread(set_but_not_trusted, ctx.settings.project, "resources")
    problem = f"{NONE}.{stated}" if stated else NONE
    shown = [one.model_copy(update={"problem": problem}) if one.problem == NONE else one for one in found.resources]
    return found.model_copy(update={"resources": shown})


def _is_among(on: str | None, where: list[str | None]) -> bool:
    """Whether a machine is one of those on which a task can be done."""
    return on in where if machine.is_far(on) else any(not machine.is_far(one) for one in where)


def _waiting(tx: Reader, ctx: Ctx, row: Row) -> WaitingTask | None:
    needs = leases.read(row["needs"])
    reason = leases.waits_for(tx, ctx.settings, row["task_id"])
    if reason is None:
        return None
    values = {"task_id": row["task_id"], "title": row["title"], "waits_for": reason}
    is_there = leases.absent(tx, row["task_id"]) is None
    return WaitingTask(**values, needs=told(needs) or "nothing", is_there=is_there)


def _resources(
    tx: Reader, ctx: Ctx, on: str | None, waiting: dict[int, Needs], named: Collection[str]
) -> Iterator[ResourceInfo]:
    """What there is on a machine, then what is only asked for.

    Args:
        waiting: the needs of the tasks that wait and can be done on it.
        named: what is anywhere.
    """
    holders: dict[tuple[str, str], list[ResourceHolder]] = {}
    for row in tx.all(SQL.holders, machine=on):
        holder = ResourceHolder.model_validate({name: row[name] for name in ResourceHolder.model_fields})
        holders.setdefault((row["name"], row["device"]), []).append(holder)
    rows = machine.stored(tx, on)
    wanted = {name for needs in waiting.values() for name in needs.amounts} | {
        GPU for needs in waiting.values() if needs.gpu
    }
    nothing = {"device": "", "amount": 0, "vram": None, "problem": NONE}
    rows += [{"name": name, **nothing} for name in sorted(wanted.difference(named)) if not machine.is_far(on)]
    held_only = sorted(holders.keys() - {(row["name"], row["device"]) for row in rows})
    gone = {"amount": 0, "vram": None, "problem": "it is gone, and still held"}
    rows += [{"name": name, "device": device, **gone} for name, device in held_only if name != ALONE]
    if (ALONE, leases.MACHINE) in held_only:
        rows.append({"name": ALONE, "device": leases.MACHINE, "amount": 1, "vram": None, "problem": None})
    there, of = leases.stock(tx, on), on if machine.is_far(on) else ctx.local.machine.name
    for row in rows:
        values = {**row, "machine": of}
        yield _resource(values, holders.get((row["name"], row["device"]), []), there, waiting)


def _resource(row: Row, holders: list[ResourceHolder], there: Stock, waiting: dict[int, Needs]) -> ResourceInfo:
    name, held = row["name"], sum(one.amount for one in holders)
    waits = [task_id for task_id, needs in waiting.items() if there.is_short_of(name, needs)]
    return ResourceInfo(
        machine=row["machine"],
        name=name,
        device=row["device"] or None,
        amount=row["amount"],
        vram=row["vram"],
        there=amount_of(name, row["amount"]),
        held=amount_of(name, held),
        problem=row["problem"],
        holders=holders,
        held_by=", ".join(f"task {one.task_id} ({one.agent_id})" if one.task_id else one.agent_id for one in holders),
        waiting=waits,
        awaited_by=", ".join(f"task {task_id}" for task_id in waits),
    )

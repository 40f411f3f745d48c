"""Leases of scarce things: taken with the claim of a task, in its transaction, and held while that attempt is open.

What is held follows from the attempts, however they end: a lease whose attempt has ended counts no more. A task that
waits long for something is not overtaken for ever: after `resource_patience_seconds` nothing else that wants the same
is begun, as long as an agent that could do it asks for work.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.model import SECOND, Wire
from workbench.rules.needs import ALONE, GPU, Device, Needs, Stock, needs_of
from workbench.services.resources import machine
from workbench.state.machine import Machine
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

MACHINE = "machine"
"""The device of the lease of a task that is alone."""
SHOWN_MACHINES = 3
"""Of how many machines a task says what it waits for there."""
ASKED_SECONDS = 60.0
"""A task keeps its turn while an agent that could do it has asked for work within this time, or within twice the
longest wait of a call, if that is longer."""


class Leased(Wire):
    """What an attempt holds: GPUs by name, and amounts of everything else, memory in bytes. `alone`: nothing else is
    begun meanwhile. `machine`: whose they are, if that has no clone of the project; null: the server's."""

    devices: list[str]
    amounts: dict[str, int]
    alone: bool
    machine: str | None = None


@dataclass(frozen=True, slots=True)
class Waits:
    """What cannot be begun now.

    Args:
        short: needs, as they are stored, of which something is not free; ``""`` are tasks that need nothing.
        absent: needs of which something is never there.
        held_back: needs that could be met, but that others have waited for too long.
        alone: the task that is alone on the machine, besides which only its subtasks are begun; 0: none is.
        is_any: whether anything is needed, or held.
    """

    short: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    held_back: Mapping[str, int] | tuple[()] = ()
    alone: int = 0
    is_any: bool = True

    @property
    def unmet(self) -> str:
        """The needs with which nothing is begun, as JSON."""
        return json.dumps([*self.short, *self.absent, *self.held_back])


def stored(needs: Mapping[str, Any] | None) -> str | None:
    """Needs in the form in which they are stored and compared."""
    return None if needs is None else json.dumps(needs, sort_keys=True)


def read(text: str) -> Needs:
    """Needs from how they are stored."""
    return (needs_of(json.loads(text)) if text else None) or Needs()


def of_task(tx: Reader, task_id: int) -> str:
    """The needs of a task, its own or else those of its persona, as they are stored."""
    row = tx.one(SQL.needs_of, task_id=task_id)
    return row["needs"] if row else ""


def stock(tx: Reader, on: str | None, *, counts_attempts: bool = True) -> Stock:
    """What there is on a machine, and what of it is held; None: on all that have a clone, as if they were one."""
    rows = machine.stored(tx, on)
    held = tx.all(SQL.held, machine=on)
    amounts = Counter[str]()
    for row in held:
        if not row["device"]:
            amounts[row["name"]] += row["amount"]
    running = tx.one(SQL.computing, machine=on) if counts_attempts else None
    return Stock(
        devices=[Device(row["device"], row["vram"]) for row in rows if row["device"] and not row["problem"]],
        amounts={row["name"]: row["amount"] for row in rows if not row["device"]},
        taken=taken_gpus(tx, on, ""),
        held=amounts,
        running=running["n"] if running else 0,
    )


def taken_gpus(tx: Reader, on: str | None, agent: str) -> set[str]:
    """The GPUs of a machine that attempts hold, or that other running agents than this one (`agent_uid`) have for
    themselves."""
    return {row["gpu"] for row in tx.all(SQL.taken_gpus, machine=on, agent=agent)}


def alone(tx: Reader, on: str | None) -> int:
    """The task that is alone on a machine; 0: none is."""
    return next((row["task_id"] for row in tx.all(SQL.held, machine=on) if row["name"] == ALONE), 0)


def leased_gpus(tx: Reader, on: str | None) -> set[str]:
    """The GPUs of a machine that attempts hold."""
    return {row["device"] for row in tx.all(SQL.held, machine=on) if row["name"] == GPU}


def waits(tx: Reader, settings: Settings | None, on: str | None) -> Waits:
    """What cannot be begun now on a machine. The same cost, however many tasks there are or were.

    Args:
        on: the machine; None: all that have a clone, as if they were one.
        settings: None: leave out what waits only because others have waited longer.
    """
    if tx.one(SQL.is_any) is None:
        return Waits(is_any=False)
    texts = [row["needs"] for row in tx.all(SQL.stated_needs)]
    asked = tx.all(SQL.long_waits, _patience(settings, tx.now), machine=on) if texts and settings else []
    groups = {text: read(text) for text in dict.fromkeys(("", *texts))}
    there = stock(tx, on, counts_attempts=any(needs.exclusive for needs in groups.values()))
    absent = tuple(text for text, needs in groups.items() if there.missing(needs))
    short = tuple(text for text, needs in groups.items() if text not in absent and there.lacking(needs))
    patient = [row for row in asked if row["needs"] in groups and row["needs"] not in absent]
    held_back: dict[str, int] = {}
    first = {row["needs"]: at for at, row in reversed([*enumerate(patient)])}
    for text, needs in groups.items():
        before = patient[: first.get(text, len(patient))]
        rival = next((row["task_id"] for row in before if needs.competes(groups[row["needs"]])), None)
        if rival is not None and text not in (*short, *absent):
            held_back[text] = rival
    return Waits(short, absent, held_back, alone(tx, on))


def _patience(settings: Settings, now: int) -> dict[str, int]:
    asked = max(ASKED_SECONDS, 2 * settings.wait_limit_seconds)
    patience = settings.resource_patience_seconds
    return {"since": now - int(patience * SECOND), "asked": now - int(asked * SECOND)}


def obstacle(tx: Reader, settings: Settings | None, on: str | None, task_id: int) -> str | None:
    """What a task waits for on a machine, in words, if it is ready; None: it may be begun there. See `waits`."""
    found = waits(tx, settings, on)
    if not found.is_any:
        return None
    text = of_task(tx, task_id)
    if found.alone and not tx.one(SQL.is_below, task_id=task_id, above=found.alone):
        return f"the end of task {found.alone}, which is alone on the machine"
    if lacking := stock(tx, on).lacking(read(text)):
        return " and ".join(lacking)
    rival = dict(found.held_back).get(text)
    return None if rival is None else f"the turn of task {rival}, which has waited longer for the same"


def waits_for(tx: Reader, settings: Settings | None, task_id: int) -> str | None:
    """What a task that is ready waits for wherever it can be done, in words; None: it may be begun. See `waits`."""
    if tx.one(SQL.is_any) is None:
        return None
    needs, reasons = read(of_task(tx, task_id)), list[tuple[str | None, str]]()
    for on in places(tx, task_id):
        reason = obstacle(tx, settings, on, task_id)
        if reason is None:
            return None
        reasons.append((on, reason))
    able = [(on, reason) for on, reason in reasons if not _stock_of(tx, on).missing(needs)]
    return _told(able or reasons)


def absent(tx: Reader, task_id: int) -> str | None:
    """What a task needs that no machine has which could do it, in words; None: one has all."""
    text = of_task(tx, task_id)
    if not text:
        return None
    missing = [(on, _stock_of(tx, on).missing(read(text))) for on in places(tx, task_id)]
    if any(not found for _, found in missing):
        return None
    return _told([(on, " and ".join(found)) for on, found in missing])


def places(tx: Reader, task_id: int) -> list[str | None]:
    """The machines on which a task can be done, this one or others that have a clone first."""
    place = tx.one(SQL.place_of, task_id=task_id)
    if place and place["far"]:
        return [machine.elsewhere(place["far"]).only]
    return machine.near(tx) if place and place["worktree"] else [*machine.near(tx), *machine.far(tx)]


def _stock_of(tx: Reader, on: str | None) -> Stock:
    return stock(tx, on, counts_attempts=False)


def _told(reasons: Sequence[tuple[str | None, str]]) -> str:
    """What is waited for on several machines, each with its name if there is one."""
    shown = [f"on {on} {reason}" if on else reason for on, reason in reasons[:SHOWN_MACHINES]]
    more = len(reasons) - len(shown)
    return ", or ".join([*shown, *([f"on {more} other machines likewise"] if more else [])])


def take(tx: Tx, here: Machine, task_id: int, attempt: int) -> str | None:
    """Lease what a task needs to the attempt that has just begun here; that it is free was asked in this transaction.

    Returns what it got, as it is stored; None: it needs nothing.
    """
    tx.run(SQL.forget_wait, task_id=task_id)
    text = of_task(tx, task_id)
    if not text or (needs := read(text)) == Needs():
        return None
    tx.run(SQL.forget_ended)
    devices = stock(tx, here.only, counts_attempts=False).choose(needs)
    leases: list[tuple[str, str, int]] = [(GPU, device, 1) for device in devices]
    leases += [(name, "", amount) for name, amount in needs.amounts.items()]
    if needs.exclusive and not alone(tx, here.only):  # else the task above it is
        leases.append((ALONE, MACHINE, 1))
    place = {"task_id": task_id, "attempt": attempt}
    held = place | {"machine": here.name}
    tx.many(SQL.add, [held | {"name": name, "device": device, "amount": n} for name, device, n in leases])
    got: dict[str, Any] = {"devices": devices, "amounts": dict(needs.amounts), "alone": needs.exclusive}
    if machine.is_far(here.name):
        got["machine"] = here.name
    leased = json.dumps(got)
    tx.run(SQL.record, place, leased=leased)
    return leased


def leased_to(tx: Reader, task_id: int, attempt: int) -> dict[str, Any] | None:
    """What an attempt was given of a machine that has a clone; None: nothing."""
    row = tx.one(SQL.leased_to, task_id=task_id, attempt=attempt)
    leased: dict[str, Any] | None = json.loads(row["leased"]) if row and row["leased"] else None
    return None if leased and leased.get("machine") else leased


def note_wait(tx: Tx, here: Machine, row: Row) -> None:
    """Record that a task waits for what it needs, and that somebody has asked here who could do it."""
    tx.run(SQL.note_wait, task_id=row["task_id"], machine=here.name, now=tx.now, before=tx.now - 5 * SECOND)

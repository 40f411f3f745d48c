"""Whether this project takes part in a network, under which name, and whom it contacts first."""

from __future__ import annotations

import re
from dataclasses import dataclass

from workbench.ops import Ctx
from workbench.state.machine import Machine
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
SETTINGS = "settings"
"""Who has decided it, if no operator has."""
LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class NetworkMembership:
    """That this project takes part.

    Args:
        rid: who the first contact has to be; None: not known yet.
        by_settings: the settings say so, and not the operator.
    """

    name: str
    url: str | None
    rid: str | None
    by_settings: bool = False
    machine: str | None = None
    """The machine that has the key of the project's node; None: the one that opens it first."""


async def of(ctx: Ctx) -> NetworkMembership | None:
    """What the operator has decided; otherwise, what the settings say. None: it takes no part."""
    return await ctx.read(lambda tx: _read(tx, ctx.settings))


def save(tx: Tx, membership: NetworkMembership, by: str, machine: Machine) -> None:
    """Record that this project takes part, with the key that this machine has."""
    about = {"name": membership.name, "url": membership.url, "rid": membership.rid, "machine": machine.name}
    tx.run(SQL.set, about, by=by, now=tx.now)


def end(tx: Tx, settings: Settings, by: str) -> None:
    """Record that this project takes no part any more."""
    tx.run(SQL.leave, name=default_name(settings), by=by, now=tx.now)


def default_name(settings: Settings) -> str:
    """The name of the setting, or else that of the project's directory."""
    return settings.koi_name or re.sub(r"[^A-Za-z0-9._-]+", "-", settings.project.name)[:LONGEST_NAME] or "workbench"


def endpoints(url: str) -> str:
    """The URL of a node, without a slash at its end."""
    return url.strip().rstrip("/")


def _read(tx: Reader, settings: Settings) -> NetworkMembership | None:
    row = tx.one(SQL.get)
    if row is not None and row["changed_by"] != SETTINGS:
        return _stored(row) if row["joined"] else None
    if not settings.koi:
        return None
    url = endpoints(settings.koi_first_contact) or None
    pinned = row["first_contact_rid"] if row is not None and row["first_contact_url"] == url else None
    name = row["name"] if row is not None else default_name(settings)
    machine = row["machine"] if row is not None and row["joined"] else None
    return NetworkMembership(name, url, settings.koi_first_contact_rid or pinned, by_settings=True, machine=machine)


def _stored(row: Row) -> NetworkMembership:
    return NetworkMembership(row["name"], row["first_contact_url"], row["first_contact_rid"], machine=row["machine"])

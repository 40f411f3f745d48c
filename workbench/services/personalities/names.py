"""Names of personalities are taken from their owners: the operator decides so, such as after a node has lost its key.

What the former owner has signed under the name stays refused, so that nobody brings it back by sending it again.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.errors import BadInput, Conflict, NotFound
from workbench.koi import rids
from workbench.koi.rids import PERSONALITY
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.rules.personalities.rid import AgentPersonality
from workbench.rules.tools.names import prefix
from workbench.services.personalities import publishing
from workbench.services.personalities.peers.directory import PeerRef, resolve
from workbench.services.personalities.pipeline import owners
from workbench.services.personalities.registry import PersonalityName
from workbench.services.personalities.self_node import hash_of, own_hash
from workbench.services.tools import permissions
from workbench.services.tools.tool import Permission
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)


class ReleasedName(Wire):
    """A name that was taken from its owner.

    `owner`: who has it now; null: the node that publishes it next gets it. `dropped`: the versions that were known.
    `asked_again`: the tools under the name that were always allowed, and are not any more.
    """

    name: str
    former_owner: str
    owner: str | None
    dropped: list[str]
    asked_again: list[str]


@op(allow=Level.OPERATOR, tool=False, destructive=True, command="personalities release")
async def release_personality_name(
    ctx: Ctx,
    name: PersonalityName,
    to: Annotated[
        PeerRef | None, Field(description="The node that gets it: its RID, or its name. Omit it: the next publisher.")
    ] = None,
) -> ReleasedName:
    """Take a name from the node that owns it, such as one that has lost its key.

    What that node has published under the name is dropped, and refused from now on. The operator's permissions for the
    tools of the name end.
    """
    functions = publishing.bound(ctx).get(name, ())
    me = await own_hash(ctx)

    def change(tx: Tx) -> ReleasedName:
        former_owner = owners.owner_of(tx, name)
        if former_owner is None:
            raise NotFound("NO_OWNER", f"No node owns the name {name!r} here, so whoever publishes it first gets it.")
        is_own = hash_of(former_owner) == me
        if is_own and (functions or tx.one(SQL.is_own, name=name)):
            raise Conflict("PERSONALITY_PUBLISHED", f"This project itself publishes {name}. Withdraw it first.")
        new_owner = _node(tx, to) if to is not None else None
        if new_owner is not None and owners.is_same(new_owner, former_owner):
            raise BadInput("SAME_OWNER", f"{name} belongs to {new_owner} already.")
        dropped = _drop(tx, name)
        _set_owner(tx, name, former_owner, new_owner, is_own=is_own)
        asked_again = _ask_again(tx, name)
        tx.emit("name.released", f"name:{name}", name=name, former_owner=former_owner, owner=new_owner)
        return ReleasedName(
            name=name, former_owner=former_owner, owner=new_owner, dropped=dropped, asked_again=asked_again
        )

    released = await ctx.write(change)
    for version in released.dropped:
        ctx.node.directory.remove(name, version)
    await _learn_anew(ctx)
    return released


def _node(tx: Tx, ref: str) -> str:
    """The RID of a node, given it or the name of a peer. A RID may be of a node that is not known yet.

    Raises:
        NotFound: ``PEER_NOT_FOUND``. BadInput: ``PEER_AMBIGUOUS``.
    """
    try:
        return str(rids.parse_node(ref))
    except ValueError:
        return resolve(tx, ref)


def _drop(tx: Tx, name: str) -> list[str]:
    """Drop what is known under a name; its versions. Notes of what was forgotten were of the former owner's."""
    personalities = [
        rid for row in tx.all(SQL.known, name=name) if isinstance(rid := rids.parse(row["rid"]), AgentPersonality)
    ]
    tx.run(SQL.drop_personalities, name=name)
    for rid in personalities:
        tx.run(SQL.drop_bundle, rid=str(rid))
        tx.run(SQL.drop_waiting, rid=str(rid))
        tx.emit("personality.forgotten", f"personality:{rid.reference}", reason="name_released")
    tx.run(SQL.drop_tombstones, prefix=f"{PERSONALITY}:{name}/")
    return [rid.version for rid in personalities]


def _set_owner(tx: Tx, name: str, former_owner: str, new_owner: str | None, *, is_own: bool) -> None:
    """Give a name to a node, or to none, and keep the former owner from it. This project can always have it back."""
    tx.run(SQL.disown, name=name)
    if not is_own:
        tx.run(SQL.release, name=name, key_hash=hash_of(former_owner), owner=former_owner, by=tx.actor, now=tx.now)
    if new_owner is not None:
        tx.run(SQL.readmit, name=name, key_hash=hash_of(new_owner))
        owners.pin(tx, name, new_owner)


def _ask_again(tx: Tx, name: str) -> list[str]:
    """End the permissions that were given for the tools of a name: another node may offer the same."""
    begins = prefix(name)
    tools = [
        row["tool"]
        for row in tx.all(permissions.SQL.list)
        if row["permission"] == Permission.ALWAYS and row["tool"].startswith(begins)
    ]
    for tool in tools:
        permissions.forget(tx, tool)
    return tools


async def _learn_anew(ctx: Ctx) -> None:
    """Publish this project's own profile of the name, if it has one, and ask the peers what they have."""
    await publishing.publish(ctx)
    if ctx.node.presence is not None:
        ctx.node.presence.compared.clear()
        ctx.node.has_mail.set()

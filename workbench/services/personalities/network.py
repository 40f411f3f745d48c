"""This project's node: it joins a network, takes part while the servers run, and leaves."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from typing import Annotated

from pydantic import Field

from workbench.errors import BadInput, Conflict, Hint, WorkbenchError
from workbench.koi import rids
from workbench.koi.identity import load_or_create
from workbench.koi.node import PeerTasks, Presence
from workbench.koi.nodes import EdgeStatus, EdgeType
from workbench.koi.payloads import EventType, KoiEvent
from workbench.koi.requests import PeerClient
from workbench.model import Level, Wire
from workbench.ops import Command, Ctx, op
from workbench.rules.personalities.addresses import is_plain, node_label
from workbench.services.personalities import bundles, membership, refusals, self_node
from workbench.services.personalities.exchange import farewell, first_contact, handshake, same_key
from workbench.services.personalities.membership import NetworkMembership
from workbench.services.personalities.peers import outbox, rows
from workbench.services.personalities.pipeline import directory, owners, run
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
MEETING_SECONDS = 5.0
"""How long joining a network waits for its first contact."""

log = logging.getLogger(__name__)

Url = Annotated[
    str,
    Field(
        max_length=2_000,
        description="Its URL, such as http://127.0.0.1:9000/koi-net. Omit it: others contact this node.",
    ),
]


class Edge(Wire):
    """`source` sends the events of `rid_types` to `target`, both RIDs; `target` fetches them if `edge_type` is POLL."""

    rid: str
    source: str
    target: str
    edge_type: EdgeType
    status: EdgeStatus
    rid_types: list[str]


class FirstContact(Wire):
    """The node that is contacted first. `rid`: who it has to be; null until it was found. `error`: of the last try."""

    url: str
    rid: str | None
    error: str | None


class Network(Wire):
    """This project's node. `is_online`: it takes part now, which it does while the servers run.

    `problem`: why it does not, though it has joined; or that another node uses its key. `notice`: what the operator
    has to do, as after the loss of a key. `peers`, `personalities`: how many are known. `waiting`: events that are
    still to be sent. `refused`: messages and calls that were refused, without those that were only out of date;
    `list_refused_peers` has them.
    """

    joined: bool
    is_online: bool
    name: str | None
    rid: str | None
    base_url: str | None
    first_contact: FirstContact | None
    problem: str | None
    notice: str | None
    peers: int
    personalities: int
    waiting: int
    refused: int
    edges: list[Edge]


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command=("koi", Command("koi status")),
    refreshed_by="peer edge personality clock",
)
async def get_network(ctx: Ctx) -> Network:
    """Show this project's node on the KOI network: its RID and address, its edges, and what waits to be sent."""
    joined = await membership.of(ctx)
    presence, problem = ctx.node.presence, ctx.node.problem
    if presence is not None and presence.same_key is not None:
        problem = same_key.error(presence.same_key)
    counts, edges = await ctx.read(_state)
    contact = None
    if joined is not None and joined.url is not None:
        contact = FirstContact(url=joined.url, rid=joined.rid, error=presence.meeting.error if presence else None)
    return Network(
        joined=joined is not None,
        is_online=presence is not None,
        name=joined.name if joined else None,
        rid=str(presence.identity.rid) if presence else None,
        base_url=presence.base_url if presence else None,
        first_contact=contact,
        problem=problem.message if problem else None,
        notice=await _lost_key(ctx),
        edges=edges,
        **counts,
    )


@op(
    allow=Level.OPERATOR,
    tool=False,
    command=Command(
        "koi join [URL]",
        names={"URL": "first_contact", "rid": "first_contact_rid"},
        help="Take part in a KOI network: contact the node at URL first, or wait until others contact this one.",
    ),
)
async def join_network(
    ctx: Ctx,
    first_contact: Url | None = None,
    first_contact_rid: Annotated[
        str | None, Field(max_length=300, description="Who it has to be. Omit it: the node that is found there first.")
    ] = None,
    name: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9._-]{1,64}$", description="Name of this node. Omit it: the setting koi_name."),
    ] = None,
) -> Network:
    """Take part in a KOI network: publish this project's personalities, and learn of those of others."""
    choice = _check_choice(ctx, first_contact, first_contact_rid, name)
    before = await membership.of(ctx)
    if before is not None and before.machine is not None:
        ctx.local.machine.require(before.machine, "The project's node on the KOI network")
    if before is not None and (before.name, before.url) != (choice.name, choice.url):
        raise Conflict(
            "KOI_JOINED",
            "This project takes part in a network already.",
            Hint("leave_network", "Leave it first: {}."),
        )
    await ctx.write(lambda tx: membership.save(tx, choice, tx.actor, ctx.local.machine))
    if ctx.local.server is not None and ctx.node.presence is None:
        await _open(ctx, choice)
    if ctx.node.presence is not None and choice.url is not None and choice.rid is None:
        await _identify(ctx, choice.url)
    if ctx.node.presence is not None and choice.url is not None:
        with suppress(TimeoutError):  # what came of it is in the answer
            async with asyncio.timeout(MEETING_SECONDS):
                await ctx.node.presence.meeting.tried.wait()
    return await get_network(ctx)


@op(
    allow=Level.OPERATOR,
    tool=False,
    command=Command("koi leave", asks="Other nodes will forget this project's personalities."),
)
async def leave_network(ctx: Ctx) -> Network:
    """Leave the KOI network: withdraw this project's personalities there, and forget those of others."""
    presence, joined = ctx.node.presence, await membership.of(ctx)
    if joined is not None and joined.machine is not None:
        ctx.local.machine.require(joined.machine, "The project's node on the KOI network")
    if presence is not None:
        async with presence.turn:
            await farewell.say(ctx, presence)
            await closed(ctx)
    await ctx.write(lambda tx: _leave(tx, ctx))
    await asyncio.to_thread(self_node.give_up_copied_key, ctx.settings)
    ctx.node.directory.replace(())
    return await get_network(ctx)


async def _lost_key(ctx: Ctx) -> str | None:
    """What to do if this node was another one, whose names are still that one's; None if it was not."""
    if ctx.node.presence is None:
        return None
    me = str(ctx.node.presence.identity.rid)
    former = await ctx.read(lambda tx: tx.one(SQL.former, me=me))
    if former is None or not former["names"] or owners.is_same(former["rid"], me):
        return None
    return (
        f"The key of {node_label(former['rid'])}, which this project was, is not there any more: it is another node "
        "now, and its personalities belong to the old key. Put the key back, or release their names "
        "to this node; tell the others its new RID."
    )


def introduction(ctx: Ctx) -> dict[str, str]:
    """Who this node is, for those who know only its address: its `rid`, and the `public_key` of it.

    Raises:
        Unavailable: ``KOI_NOT_JOINED``.
    """
    identity = handshake.present(ctx).identity
    return {"rid": str(identity.rid), "public_key": identity.public_key}


async def opened(ctx: Ctx) -> None:
    """Take part while the servers run, if the project has joined. A failure is shown, and stops nothing else."""
    try:
        joined = await membership.of(ctx)
        if joined is not None:
            if joined.machine is not None:
                ctx.local.machine.require(joined.machine, "The project's node on the KOI network")
            if joined.by_settings:
                await ctx.write(lambda tx: membership.save(tx, joined, membership.SETTINGS, ctx.local.machine))
            await _open(ctx, joined)
    except WorkbenchError as error:
        ctx.node.problem = error
        log.warning("this project does not take part in its KOI network: %s", error.message)


async def closed(ctx: Ctx) -> None:
    """Take no part for now: end all requests. What is still to be sent is kept."""
    presence, ctx.node.presence = ctx.node.presence, None
    if presence is not None:
        await presence.tasks.close()
        await presence.client.close()


def _check_choice(ctx: Ctx, url: str | None, rid: str | None, name: str | None) -> NetworkMembership:
    """The membership that the operator chose.

    Raises:
        BadInput: ``BAD_FIRST_CONTACT``.
    """
    contact = membership.endpoints(url) if url else None
    if contact is not None and not is_plain(contact):
        raise BadInput("BAD_FIRST_CONTACT", "The first contact is a URL such as http://127.0.0.1:9000/koi-net.")
    if rid is not None and contact is None:
        raise BadInput("BAD_FIRST_CONTACT", "Give the URL of the first contact, and not its RID alone.")
    if rid is not None:
        try:
            rids.parse_node(rid)
        except ValueError as error:
            raise BadInput("BAD_FIRST_CONTACT", f"{rid!r} is not the RID of a node: {error}.") from None
    return NetworkMembership(name or membership.default_name(ctx.settings), contact, rid)


async def _identify(ctx: Ctx, url: str) -> None:
    """Ask the first contact for its RID. One that cannot be reached is tried again later.

    Raises:
        Unavailable: ``KOI_RID_UNKNOWN``; the project has not joined then.
    """
    try:
        await first_contact.identify(ctx, url)
    except WorkbenchError as error:
        if error.code != "KOI_RID_UNKNOWN":
            return
        await leave_network(ctx)
        raise


async def _open(ctx: Ctx, joined: NetworkMembership) -> None:
    settings, server = ctx.settings, ctx.local.server
    if server is None:
        return
    await asyncio.to_thread(self_node.require_own_key, settings)
    identity = await asyncio.to_thread(load_or_create, self_node.key_file(settings), joined.name)
    await directory.fill(ctx)  # before anything can be received, whose changes it would not have
    client = PeerClient(identity, seconds=settings.koi_answer_seconds, largest=settings.max_koi_answer_bytes)
    base_url = membership.endpoints(settings.koi_base_url) or f"{server.url}/koi-net"
    types = [rids.PERSONALITY] if joined.url else [rids.PERSONALITY, rids.NODE, rids.EDGE]
    presence = Presence(
        identity, base_url, client, PeerTasks(ctx.node.has_mail.set), types=types, began=ctx.store.now()
    )
    ctx.node.presence, ctx.node.problem = presence, None
    if notice := await _lost_key(ctx):
        log.warning("%s", notice)
    try:
        await _require_sole_use(ctx, presence)
        await _announce(ctx, presence, joined)
    except BaseException:
        await closed(ctx)
        raise


async def _require_sole_use(ctx: Ctx, presence: Presence) -> None:
    """Refuse to take part if another node with the same key answers at the address that this one had before.

    Raises:
        Conflict: ``KOI_KEY_SHARED``.
    """
    former = await ctx.read(lambda tx: bundles.find(tx, presence.identity.rid))
    url = same_key.address(former.bundle.contents) if former is not None else None
    if url is not None and url != presence.base_url and await same_key.probe(ctx, presence, url):
        raise same_key.error(url)


async def _announce(ctx: Ctx, presence: Presence, joined: NetworkMembership) -> None:
    """Publish this node, which may have another address than before, and what it owns to the first contact."""
    me = presence.identity.rid

    def prepare(tx: Tx) -> None:
        tx.run(rows.SQL.retry_all)
        tx.run(rows.SQL.set_relay, rid=joined.rid or "")
        outbox.empty_of_strangers(tx)

    await ctx.write(prepare)
    event = KoiEvent(
        rid=me, event_type=EventType.NEW, contents=presence.profile().model_dump(mode="json", by_alias=True)
    )
    await run.handle(ctx, [event], None)
    if joined.rid is not None:
        contact = joined.rid
        await ctx.write(lambda tx: outbox.put_known(tx, contact, [rids.PERSONALITY], me=str(me), everything=False))
    ctx.node.has_mail.set()


def _leave(tx: Tx, ctx: Ctx) -> None:
    """Drop what is known of the network, but not which nodes are blocked."""
    membership.end(tx, ctx.settings, tx.actor)
    for row in tx.all(SQL.personalities):
        tx.emit("personality.forgotten", f"personality:{row['name']}/{row['version']}", reason="left_network")
    for drop in (SQL.drop_outbox, SQL.drop_rejections, SQL.drop_edges, SQL.drop_personalities, SQL.drop_bundles):
        tx.run(drop)


def _state(tx: Reader) -> tuple[dict[str, int], list[Edge]]:
    counts = tx.one(SQL.counts, usual=refusals.USUAL_CODES)
    edges = [Edge.model_validate({**row, "rid_types": json.loads(row["rid_types"])}) for row in tx.all(SQL.edges)]
    return dict(counts or {}), edges

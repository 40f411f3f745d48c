"""The KOI network: `koi`. This project's node and its peers."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.operations.declared import view
from workbench.cli.output import Note, Shown, Text, counted, drop_none, pass_client
from workbench.present.inert import inert, inert_line
from workbench.present.tables import Table
from workbench.rules.personalities.addresses import node_label

OFFLINE = "It takes part while the servers run: `workbench serve`, or `%workbench start` in a notebook."


@root.group(invoke_without_command=True)
@click.pass_context
def koi(ctx: click.Context) -> Shown:
    """The KOI network: status, join, leave, peers, block, unblock, allow; coordinator, agent, demo."""
    return None if ctx.invoked_subcommand else ctx.invoke(koi.commands["status"])


@koi.command()
@click.argument("peer", required=False, shell_complete=offers.peers)
@pass_client
def peers(client: OperatorClient, peer: str | None) -> Shown:
    """List the nodes that this one knows, or show one of them: what was refused, and what it may call."""
    if peer is not None:
        return _peer(client.call("get_peer", peer=peer))
    found = [{**peer, "label": node_label(peer["rid"])} for peer in client.call("list_peers")["peers"]]
    columns = {
        **{"label": "node", "state": "state", "gets_from_us": "gets ours", "sends_to_us": "sends"},
        **{"personalities": "personalities", "waiting": "waiting", "refused": "refused", "last_seen": "last seen"},
    }
    return Table.of(found, columns, "No other node is known.")


@koi.command()
@click.argument("peer", shell_complete=offers.peers)
@click.argument("trait", metavar="TOOL")
@click.argument("permission", type=click.Choice(["always", "ask", "never", "default"]))
@click.option("--per-minute", "calls_per_minute", type=click.IntRange(1), help="At most this many calls per minute.")
@pass_client
def allow(client: OperatorClient, peer: str, trait: str, permission: str, calls_per_minute: int | None) -> Shown:
    """Let a node call a tool (`agent__tool`, or * for all) always, after a question to you, or never."""
    chosen = None if permission == "default" else permission
    return _peer(
        client.call(
            "set_peer_permission",
            peer=peer,
            trait=trait,
            permission=chosen,
            **drop_none(calls_per_minute=calls_per_minute),
        )
    )


@view("Network")
def _network(found: dict[str, Any]) -> Shown:
    if not found["joined"]:
        text = "This project takes no part in a KOI network. `workbench koi join URL` joins the one of a node."
        return Note(text, found)
    if not found["is_online"]:
        return Note(f"This project is the node {found['name']}. {found['problem'] or OFFLINE}", found)
    contact = found["first_contact"]
    lines = [
        f"This project is the node {found['rid']} at {found['base_url']}.",
        f"It contacts {contact['url']} first. {contact['error'] or ''}".strip() if contact else "Others contact it.",
        f"It knows {counted(found['peers'], 'node')} and {_personalities(found['personalities'])}; "
        f"{counted(found['waiting'], 'event')} waiting to be sent, {found['refused']:,} refused from others.",
    ]
    return Text(inert("\n".join(lines)), found)


def _personalities(number: int) -> str:
    return f"{number:,} {'personality' if number == 1 else 'personalities'}"


@view("PeerDetails")
def _peer(found: dict[str, Any]) -> Shown:
    peer = found["peer"]
    rows = [["refused", one["code"], one["count"], inert_line(one["last_reason"])] for one in found["refusals"]]
    rows += [
        ["rejects" if one["is_final"] else "fails with", one["rid"], one["code"], inert_line(one["reason"])]
        for one in found["rejections"]
    ]
    rows += [
        ["may call", one["trait"], one["permission"], f"at most {one['calls_per_minute']} times per minute"]
        for one in found["permissions"]
    ]
    lead = f"{node_label(peer['rid'])} is {peer['state']}: {peer['rid']} at {peer['base_url'] or 'no address'}"
    return Table(["", "what", "how", "note"], rows, "Nothing was refused, and nothing is decided.", found, lead=lead)

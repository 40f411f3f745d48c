"""The KOI network: `koi`. This project's node and its peers."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.operations.declared import view
from workbench.cli.output import Note, Shown, Text, counted, pass_client
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
@click.option("--unknown", is_flag=True, help="List what was refused of senders that are not known, and why.")
@pass_client
def peers(client: OperatorClient, peer: str | None, unknown: bool) -> Shown:
    """List the nodes that this one knows, or show one of them: what was refused, and what it may call."""
    if unknown:
        return _refusals(client.call("list_refused_peers", unknown=True))
    if peer is not None:
        return _peer(client.call("get_peer", peer=peer))
    nodes = [{**node, "label": node_label(node["rid"])} for node in client.call("list_peers")["peers"]]
    columns = {
        **{"label": "node", "state": "state", "gets_from_us": "gets ours", "sends_to_us": "sends"},
        **{"personalities": "personalities", "waiting": "waiting", "refused": "refused", "last_seen": "last seen"},
    }
    return Table.of(nodes, columns, "No other node is known.")


@view("Network")
def _network(network: dict[str, Any]) -> Shown:
    if not network["joined"]:
        text = "This project takes no part in a KOI network. `workbench koi join URL` joins the one of a node."
        return Note(text, network)
    if not network["is_online"]:
        return Note(f"This project is the node {network['name']}. {network['problem'] or OFFLINE}", network)
    contact = network["first_contact"]
    lines = [
        f"This project is the node {network['rid']} at {network['base_url']}.",
        *([network["problem"]] if network["problem"] else []),
        f"It contacts {contact['url']} first. {contact['error'] or ''}".strip() if contact else "Others contact it.",
        f"It knows {counted(network['peers'], 'node')} and {_personalities(network['personalities'])}; "
        f"{counted(network['waiting'], 'event')} waiting to be sent, {network['refused']:,} refused from others.",
        *([network["notice"]] if network["notice"] else []),
        *(["`workbench koi peers --unknown` lists what was refused of unknown senders."] if network["refused"] else []),
    ]
    return Text(inert("\n".join(lines)), network)


def _refusals(found: dict[str, Any]) -> Table:
    senders = {row["rid"]: node_label(row["rid"]) if row["rid"] else "not known" for row in found["refusals"]}
    rows = [
        [senders[row["rid"]], row["code"], row["count"], row["last_at"], inert_line(row["last_reason"])]
        for row in found["refusals"]
    ]
    headings = ["sender", "code", "count", "last", "reason"]
    return Table(headings, rows, "Nothing was refused of senders that are not known.", found)


def _personalities(number: int) -> str:
    return f"{number:,} {'personality' if number == 1 else 'personalities'}"


@view("PeerDetails")
def _peer(details: dict[str, Any]) -> Shown:
    peer = details["peer"]
    rows = [["refused", row["code"], row["count"], inert_line(row["last_reason"])] for row in details["refusals"]]
    rows += [
        ["rejects" if row["is_final"] else "fails with", row["rid"], row["code"], inert_line(row["reason"])]
        for row in details["rejections"]
    ]
    rows += [
        ["may call", row["trait"], row["permission"], f"at most {row['calls_per_minute']} times per minute"]
        for row in details["permissions"]
    ]
    lead = f"{node_label(peer['rid'])} is {peer['state']}: {peer['rid']} at {peer['base_url'] or 'no address'}"
    return Table(["", "what", "how", "note"], rows, "Nothing was refused, and nothing is decided.", details, lead=lead)

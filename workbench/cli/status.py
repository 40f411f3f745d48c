"""The state of the project: `status`, `events`, `performance`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Shown, pass_client
from workbench.tables import Table

EVENT_COLUMNS = {"id": "id", "at": "at", "kind": "kind", "actor": "by", "subject": "about"}


@root.command()
@pass_client
def status(client: OperatorClient) -> Shown:
    """Show the server, your inbox, agents and tasks."""
    counts = client.call("count_tasks")["counts"]
    waiting = client.call("list_approvals")["approvals"]
    agents = client.call("list_agents")["agents"]
    unattended = client.call("get_unattended_work")
    server = client.find_server()
    rows: list[list[Any]] = [
        ["project", client.settings.project],
        ["server", server.url if server else "not running"],
        ["waiting for approval", len(waiting)],
        ["agents", len(agents)],
        *[[f"tasks {state}", number] for state, number in sorted(counts.items())],
    ]
    data = {"server": server and server.url, "waiting": waiting, "agents": agents, "tasks": counts}
    return Table(["", ""], rows, data=data | {"unattended": unattended}, note=_offer(unattended))


def _offer(unattended: Mapping[str, Any]) -> str:
    """What to do about open tasks that no agent is left to do."""
    command = f" (workbench restart {' '.join(unattended['restartable'])})" if unattended["restartable"] else ""
    return f"{unattended['message']}{command}"


@root.command()
@click.option("--after", default=0, help="Only events with a larger id.")
@click.option("--kinds", default="*", help="Comma-separated: task.*, agent.registered, …")
@click.option("--limit", default=50, show_default=True, help="At most this many.")
@pass_client
def events(client: OperatorClient, after: int, kinds: str, limit: int) -> Shown:
    """List events, oldest first."""
    while True:
        page = client.call("list_events", after=after, kinds=kinds.split(","), limit=limit)
        if page["events"] or page["next_after"] == after:
            break
        after = page["next_after"]
    note = f"… there may be more: --after {page['next_after']}" if len(page["events"]) == limit else ""
    return Table.of(page["events"], EVENT_COLUMNS, "There are no such events yet.", note=note)


@root.command()
@pass_client
def performance(client: OperatorClient) -> Shown:
    """Show queue, commits, connections and events."""
    found = client.call("get_performance")
    return Table(["", ""], [[name.replace("_", " "), value] for name, value in _flat(found)], data=found)


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name} ")
        else:
            yield f"{before}{name}", value

"""The state of the project: `status`, `events`, `performance`, `telemetry`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from workbench.cli.approvals import MOST
from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.operations.declared import view
from workbench.cli.output import NounGroup, Shown, drop_none, pass_client
from workbench.model import Registration, ServerInfo
from workbench.present.tables import StateCell, Table

NO_EVENTS = "There are no such events yet."
EVENT_COLUMNS = {"id": "id", "at": "at", "kind": "kind", "actor": "by", "subject": "about"}


@root.command()
@pass_client
def status(client: OperatorClient) -> Shown:
    """Show the server, your inbox, agents and tasks."""
    counted = client.call("count_tasks")
    counts, blocked = counted["counts"], counted["blocked"]
    approvals = client.call("list_approvals", limit=MOST)["approvals"]
    agents = client.call("list_agents")
    states = {state: client.call("list_agents", status=state, limit=1)["total"] for state in Registration}
    tasks = {**counts, "blocked": blocked, "pending": counts.get("pending", 0) - blocked}
    stuck = [["tasks blocked by failed or cancelled ones", counted["stuck"]]] if counted["stuck"] else []
    unattended = client.call("get_unattended_work")
    server = client.find_server()
    rows: list[list[Any]] = [
        ["project", client.settings.project],
        ["server", _server(server)],
        ["store", client.settings.store],
        ["waiting for approval", len(approvals)],
        *[[f"agents {state}", number] for state, number in states.items() if number],
        *[[f"tasks {StateCell.of(state)}", number] for state, number in sorted(tasks.items()) if number],
        *stuck,
    ]
    data = {"server": server and server.url, "store": client.settings.store, "unattended": unattended}
    data |= {"waiting": approvals, "agents": agents["agents"], "tasks": counts}
    return Table(["", ""], rows, data=data, note=_offer(unattended))


def _server(server: ServerInfo | None) -> str:
    """Where the server is, and how it is ended if no terminal or notebook shows that."""
    from workbench.shells.detached import is_detached

    if server is None:
        return "not running"
    return f"{server.url} (detached; `workbench stop` ends it)" if is_detached(server) else server.url


def _offer(unattended: Mapping[str, Any]) -> str:
    """What to do about open tasks that no agent is left to do."""
    command = f" (workbench restart {' '.join(unattended['restartable'])})" if unattended["restartable"] else ""
    return f"{unattended['message']}{command}"


@root.command()
@click.option("--after", type=int, default=None, help="The first events with a larger id, instead of the newest.")
@click.option("--before", type=int, default=None, help="The newest events with a smaller id.")
@click.option("--kinds", default="*", help="Comma-separated: task.*, agent.registered, …")
@click.option("--about", "subject", default=None, help="Only events about this: task:7, or an agent's id.")
@click.option("--limit", default=50, show_default=True, help="At most this many.")
@pass_client
def events(
    client: OperatorClient, after: int | None, before: int | None, kinds: str, subject: str | None, limit: int
) -> Shown:
    """List the newest events, the newest last."""
    if after is not None and before is not None:
        raise click.UsageError("Give --after or --before, not both.")
    filters = drop_none(kinds=kinds.split(","), subject=subject)
    if after is None:
        return _newest_events(client, filters, before, limit)
    while True:
        page = client.call("list_events", after=after, limit=limit, **filters)
        if page["events"] or page["next_after"] == after:
            break
        after = page["next_after"]
    note = f"… there may be more: --after {page['next_after']}" if len(page["events"]) == limit else ""
    return Table.of(page["events"], EVENT_COLUMNS, NO_EVENTS, note=note)


def _newest_events(client: OperatorClient, filters: Mapping[str, Any], before: int | None, limit: int) -> Table:
    events: list[dict[str, Any]] = []
    while True:
        place = drop_none(before=before, limit=limit - len(events))
        page = client.call("list_newest_events", **place, **filters)
        events, before = page["events"] + events, page["next_before"]
        if before is None or len(events) >= limit:
            break
    note = f"There are older ones: --before {before}" if before is not None else ""
    return Table.of(events, EVENT_COLUMNS, NO_EVENTS, note=note)


@view("Performance")
def _performance(performance: dict[str, Any]) -> Shown:
    rows = [[name.replace("_", " "), value] for name, value in _flat(performance)]
    return Table(["", ""], rows, data=performance)


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name} ")
        else:
            yield f"{before}{name}", value


@root.group(cls=NounGroup)
def telemetry() -> None:
    """What an OpenTelemetry collector is told: `docs/telemetry.md`."""

"""Contexts, which agents write for each other: `contexts` lists, searches, shows, deletes and restores them."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Fn, NounGroup, Shown, Text, drop_none, pass_client
from workbench.cli.spaces import add_delete_and_restore
from workbench.tables import Table

COLUMNS = {
    "id": "id",
    "session_id": "session",
    "sequence_number": "number",
    "agent_id": "agent",
    "title": "title",
    "updated_at": "changed",
}


@root.group(cls=NounGroup)
def contexts() -> None:
    """Contexts: list, search, show, delete, restore."""


def filters(command: Fn) -> Fn:
    """Give a command the options that choose contexts."""
    limit = click.option(
        "--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most this many contexts."
    )
    agent = click.option("--agent", "agent_id", default=None, help="Only contexts of this agent.")
    session = click.option("--session", "session_id", default=None, help="Only contexts of this session.")
    return session(agent(limit(command)))


@contexts.command("list")
@filters
@pass_client
def list_contexts(client: OperatorClient, limit: int, **chosen: Any) -> Shown:
    """List the contexts."""
    return _read(client, limit, **chosen)


@contexts.command("search")
@click.argument("words")
@filters
@pass_client
def search_contexts(client: OperatorClient, words: str, limit: int, **chosen: Any) -> Shown:
    """Find contexts by words in their titles and contents."""
    return _read(client, limit, search=words, **chosen)


@contexts.command("show")
@click.argument("context_id")
@pass_client
def show_context(client: OperatorClient, context_id: str) -> Shown:
    """Print one context."""
    found = client.call("get_context", context_id=context_id)
    return Text(f"{found['title']}\n\n{found['content']}", found)


add_delete_and_restore(contexts, "context", "a context")


def _read(client: OperatorClient, limit: int, **chosen: Any) -> Table:
    found = client.call("read", resource_type="contexts", filters=drop_none(**chosen), limit=limit)
    note = "… and more; use a larger --limit to see them." if found["next_cursor"] else ""
    return Table.of(found["data"], COLUMNS, "No context matches.", note=note)

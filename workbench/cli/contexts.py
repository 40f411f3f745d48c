"""Contexts: what agents wrote down; `contexts`, searching, deleting and restoring."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.output import Note, NounGroup, Shown, Text, drop_none, pass_client
from workbench.tables import Table

COLUMNS = {
    "id": "id",
    "session_id": "session",
    "sequence_number": "number",
    "agent_id": "agent",
    "title": "title",
    "updated_at": "changed",
}


@click.group(cls=NounGroup)
def contexts() -> None:
    """What agents wrote: list, search, show, delete, restore."""


@contexts.command("list")
@click.option("--session", "session_id", default=None, help="Only those of this session.")
@click.option("--agent", "agent_id", default=None, help="Only those of this agent.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@pass_client
def list_contexts(client: OperatorClient, limit: int, **filters: Any) -> Shown:
    """List the contexts."""
    return _read(client, limit, **filters)


@contexts.command("search")
@click.argument("words")
@click.option("--session", "session_id", default=None, help="Only those of this session.")
@click.option("--agent", "agent_id", default=None, help="Only those of this agent.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@pass_client
def search_contexts(client: OperatorClient, words: str, limit: int, **filters: Any) -> Shown:
    """Find contexts by words of their title and content."""
    return _read(client, limit, search=words, **filters)


@contexts.command("show")
@click.argument("context_id")
@pass_client
def show_context(client: OperatorClient, context_id: str) -> Shown:
    """Print one context."""
    found = client.call("get_context", context_id=context_id)
    return Text(f"{found['title']}\n\n{found['content']}", found)


@contexts.command("delete")
@click.argument("context_id")
@pass_client
def delete_context(client: OperatorClient, context_id: str) -> Shown:
    """Delete a context; `restore` brings it back."""
    return Note(f"{context_id} is deleted.", client.call("delete_context", context_id=context_id))


@contexts.command("restore")
@click.argument("context_id")
@pass_client
def restore_context(client: OperatorClient, context_id: str) -> Shown:
    """Bring a deleted context back, by its id."""
    made = client.call("restore_context", context_id=context_id)
    return Note(f"{context_id} is back.", made)


def _read(client: OperatorClient, limit: int, **filters: Any) -> Table:
    found = client.call("read", resource_type="contexts", filters=drop_none(**filters), limit=limit)
    note = "… and more; a larger --limit shows them." if found["next_cursor"] else ""
    return Table.of(found["data"], COLUMNS, "No context matches.", note=note)

"""Contexts, which agents write for each other: `contexts` lists, searches, shows, writes and deletes them."""

from __future__ import annotations

from typing import Any, TextIO

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Fn, JsonObject, Note, NounGroup, Shown, drop_none, enumerated, pass_client
from workbench.errors import BadInput
from workbench.present.tables import Table

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
    """Contexts: list, search, show, add, edit, delete, restore."""


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
def list_contexts(client: OperatorClient, limit: int, **options: Any) -> Shown:
    """List the contexts."""
    return _list(client, limit, **options)


@contexts.command("search")
@click.argument("words")
@filters
@pass_client
def search_contexts(client: OperatorClient, words: str, limit: int, **options: Any) -> Shown:
    """Find contexts by words in their titles and contents."""
    return _list(client, limit, search=words, **options)


def content_options(command: Fn) -> Fn:
    """Give a command the options for what a context says."""
    metadata = click.option("--metadata", type=JsonObject(), default=None, help="An object in JSON.")
    file = click.option("--file", type=click.File("r", encoding="utf-8"), help="Read its text from FILE; - is stdin.")
    content = click.option("--content", default=None, help="Its text.")
    return content(file(metadata(command)))


@contexts.command("add")
@click.argument("session_id", metavar="SESSION")
@click.argument("title")
@content_options
@pass_client
def add_context(client: OperatorClient, session_id: str, title: str, **options: Any) -> Shown:
    """Write a context to a session, as the operator."""
    context = client.call("write", session_id=session_id, content={"title": title, **_content(**options)})
    number, context_id = context["sequence_number"], context["context_id"]
    return Note(f"Wrote context {number} of {session_id}; its id is {context_id}.", context)


@contexts.command("edit")
@click.argument("context_id")
@click.option("--title", default=None, help="Its new title.")
@content_options
@pass_client
def edit_context(client: OperatorClient, context_id: str, title: str | None, **options: Any) -> Shown:
    """Change the title, the content or the metadata of a context."""
    changes = drop_none(title=title) | _content(**options)
    if not changes:
        raise click.UsageError("Give --title, --content, --file or --metadata.")
    context = client.call("update_context", context_id=context_id, **changes)
    return Note(f"Changed the {enumerated([*changes])} of {context['title'] or context_id}.", context)


def _content(content: str | None, file: TextIO | None, metadata: dict[str, Any] | None) -> dict[str, Any]:
    """The options for what a context says, as operations take them."""
    if content is not None and file is not None:
        raise click.UsageError("Give --content or --file, not both.")
    try:
        text = content if file is None else file.read()
    except UnicodeDecodeError as error:
        raise BadInput("NOT_TEXT", f"The file is not UTF-8 text: {error.reason}.") from None
    return drop_none(content=text, metadata=metadata)


def _list(client: OperatorClient, limit: int, **filters: Any) -> Table:
    page = client.call("read", resource_type="contexts", filters=drop_none(**filters), limit=limit)
    note = "… and more; use a larger --limit to see them." if page["next_cursor"] else ""
    return Table.of(page["data"], COLUMNS, "No context matches.", note=note)

"""Conversations: created with a definition or a model, listed, changed and deleted."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Annotated

from pydantic import Field

from workbench.definition_files import Snapshot
from workbench.errors import BadInput, NotFound
from workbench.model import LARGEST_INT, Level, Wire, uuid7
from workbench.ops import Command, Ctx, Ok, RestRoute, op
from workbench.rules.chat.limits import ConversationLimits
from workbench.rules.definitions.providers import provider_id
from workbench.rules.naming import like_pattern
from workbench.rules.wire import paging
from workbench.rules.wire.paging import Cursor, Limit, Search
from workbench.services.conversations.conversation import (
    SQL,
    ConversationId,
    ConversationInfo,
    conversation_of,
    require_conversation,
)
from workbench.services.definitions import changes
from workbench.services.tools import catalogue, permissions
from workbench.store.base import Tx

ALL_TOOLS = "*"

Title = Annotated[
    str, Field(max_length=200, description="What it is about; empty: the beginning of its first question.")
]
DefinitionTarget = Annotated[
    str | None,
    Field(min_length=1, max_length=1_000, description="The definition of the agent: path, id or name; null: none."),
]
ModelName = Annotated[
    str | None,
    Field(max_length=200, pattern=r"^[a-z]+:.+$", description="provider:model; null: that of the definition."),
]
Include = Annotated[
    list[Annotated[str, Field(max_length=100)]],
    Field(max_length=1_000, description="The definition's manual rules and references to use."),
]
Tools = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=100)]],
    Field(
        max_length=1_000,
        description="What the model may call: * (functions of notebooks, and MCP servers of the project and of the "
        "definition), names of servers, notebook, names of tools; workbench adds the operations of Workbench.",
    ),
]
Limits = Annotated[ConversationLimits, Field(description="Turns, tokens, cost_usd and seconds; null: no limit.")]


class Conversations(Wire):
    """Conversations, the one that was continued last first. `next_cursor` is null on the last page."""

    conversations: list[ConversationInfo]
    next_cursor: str | None


@op(allow=Level.OPERATOR, tool=False, rest=RestRoute("POST", "/conversations"))
async def create_conversation(
    ctx: Ctx,
    definition: DefinitionTarget = None,
    model: ModelName = None,
    title: Title = "",
    tools: Tools = [ALL_TOOLS],
    include: Include = [],
    limits: Limits = ConversationLimits(),
) -> ConversationInfo:
    """Begin a conversation with the agent of a definition, or with a model alone; ask puts a question to it.

    Each answer takes the definition as it is then. Without a definition, the configuration of the model's provider is
    read from environment variables of the server, such as ANTHROPIC_API_KEY.
    """
    snapshot = await changes.read(ctx, definition) if definition is not None else None
    _require_model(model, snapshot)
    _require_known(include, snapshot)
    await catalogue.require_known(ctx, tools, snapshot.definition if snapshot else None)
    values = {
        "id": "",
        "title": title.strip(),
        "definition_id": snapshot.definition.metadata.id if snapshot else None,
        "definition_path": ctx.definitions.display_path(snapshot.path) if snapshot else None,
        **_choices(model, include, tools, limits),
    }

    def change(tx: Tx) -> ConversationInfo:
        conversation_id = str(uuid7(tx.now))
        tx.run(SQL.add, values | {"id": conversation_id}, now=tx.now)
        tx.emit(
            "conversation.created",
            f"conversation:{conversation_id}",
            title=title,
            definition_id=values["definition_id"],
        )
        return require_conversation(tx, conversation_id)

    return await ctx.write(change)


@op(allow=Level.OPERATOR, reads=True, tool=False, rest=RestRoute("GET", "/conversations/{conversation_id}"))
async def get_conversation(ctx: Ctx, conversation_id: ConversationId) -> ConversationInfo:
    """Get a conversation: its definition, limits, and what it has used. list_turns reads its turns."""
    return await ctx.read(lambda tx: require_conversation(tx, conversation_id))


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command=Command("conversations list"),
    rest=RestRoute("GET", "/conversations", rows="conversations"),
    refreshed_by="conversation",
)
async def list_conversations(
    ctx: Ctx, search: Search = None, limit: Limit = 50, cursor: Cursor = None
) -> Conversations:
    """List the conversations, the one that was continued last first. `search` searches titles and definitions."""
    before_at, before_id = paging.decode(cursor, int, str) if cursor else (LARGEST_INT, "")
    where = {"before_at": before_at, "before_id": before_id, "search": like_pattern(search), "limit": limit + 1}
    rows = await ctx.read(lambda tx: tx.all(SQL.list, where))
    shown, following = paging.cut(rows, limit, "updated_at", "id")
    return Conversations(conversations=[conversation_of(row) for row in shown], next_cursor=following)


@op(
    allow=Level.OPERATOR,
    tool=False,
    command=(
        "call update_conversation",
        Command(
            "conversations rename CONVERSATION TITLE",
            "{conversation_id} is now {title!r}.",
            options=(),
            help="Give a conversation another title.",
        ),
    ),
    rest=RestRoute("PATCH", "/conversations/{conversation_id}"),
)
async def update_conversation(
    ctx: Ctx,
    conversation_id: ConversationId,
    title: Title | None = None,
    model: ModelName = None,
    tools: Tools | None = None,
    include: Include | None = None,
    limits: Limits | None = None,
) -> ConversationInfo:
    """Change a conversation; omitted arguments stay unchanged. An answer that is being made goes on as it began.

    `limits` replaces all limits.
    """
    choices = {"title": title, "model": model, "tools": tools, "include": include, "limits": limits}
    names = sorted(name for name, value in choices.items() if value is not None)
    if tools is not None:
        await _require_tools(ctx, conversation_id, tools)

    def change(tx: Tx) -> ConversationInfo:
        now = require_conversation(tx, conversation_id)
        if names:
            values = _choices(
                model or now.model,
                now.include if include is None else include,
                now.tools if tools is None else tools,
                limits or now.limits,
            )
            tx.run(SQL.update, values, id=now.id, title=now.title if title is None else title.strip(), now=tx.now)
            tx.emit("conversation.changed", f"conversation:{now.id}", changes=names)
        return require_conversation(tx, conversation_id)

    return await ctx.write(change)


@op(
    allow=Level.OPERATOR,
    destructive=True,
    tool=False,
    command="conversations delete",
    rest=RestRoute("DELETE", "/conversations/{conversation_id}"),
)
async def delete_conversation(ctx: Ctx, conversation_id: ConversationId) -> Ok:
    """Delete a conversation with its turns; its answer is stopped if one is being made. Tool calls stay recorded."""

    def change(tx: Tx) -> None:
        require_conversation(tx, conversation_id)
        for query in (SQL.delete_frames, SQL.delete_requests, SQL.delete_turns, SQL.delete):
            tx.run(query, id=conversation_id)
        permissions.forget_conversation(tx, conversation_id)
        tx.emit("conversation.deleted", f"conversation:{conversation_id}")

    await ctx.write(change)
    await ctx.local.answers.discard(conversation_id)
    return Ok()


async def _require_tools(ctx: Ctx, conversation_id: str, tools: list[str]) -> None:
    """Refuse new words for tools that mean none; those that the conversation has may be of tools that are gone.

    Raises:
        NotFound: ``UNKNOWN_TOOL``, ``CONVERSATION_NOT_FOUND``.
    """
    now = await ctx.read(lambda tx: require_conversation(tx, conversation_id))
    if not (names := set(tools).difference(now.tools)):
        return
    snapshot = await changes.current(ctx, now.definition_id, now.definition_path) if now.definition_id else None
    await catalogue.require_known(ctx, names, snapshot.definition if snapshot else None)


def _choices(
    model: str | None, include: list[str], tools: list[str], limits: ConversationLimits
) -> dict[str, str | None]:
    """The columns that the operator may choose."""
    return {
        "model": model,
        "include": json.dumps(include),
        "tools": json.dumps(list(dict.fromkeys(tools))),
        "limits": limits.model_dump_json(exclude_none=True),
    }


def _require_model(model: str | None, snapshot: Snapshot | None) -> None:
    """Refuse a conversation that has no model, or one of a provider that there is not.

    Raises:
        BadInput: ``MODEL_REQUIRED``, ``PROVIDER_UNKNOWN``.
    """
    name = model or (snapshot.definition.settings.model if snapshot else "")
    if not name:
        whose = "The definition names no model. " if snapshot else ""
        raise BadInput("MODEL_REQUIRED", f"{whose}Choose one: model=provider:model.")
    provider_id(name.partition(":")[0])


def _require_known(include: Collection[str], snapshot: Snapshot | None) -> None:
    """Refuse names that are of no rule or reference.

    Raises:
        NotFound: ``NOT_FOUND``. BadInput: ``DEFINITION_REQUIRED``.
    """
    if include and snapshot is None:
        raise BadInput("DEFINITION_REQUIRED", "include names parts of a definition. Give the definition, too.")
    entries = (*snapshot.definition.rules, *snapshot.definition.references) if snapshot else ()
    if unknown := sorted(set(include) - {entry.name for entry in entries}):
        raise NotFound("NOT_FOUND", f"The definition has no rule or reference {unknown[0]!r}.")

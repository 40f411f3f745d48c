"""Contexts, which agents write for each other, numbered in their session without gaps (spec 1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Annotated, Any

from pydantic import Field
from pydantic_core import to_json

from workbench.errors import BadInput, Hint, NotFound, Refused
from workbench.model import Level, Micros, Wire, uuid7
from workbench.ops import SAID, Caller, Command, Ctx, RestRoute, op
from workbench.ops.parameters import ContextId
from workbench.rules.naming import words
from workbench.rules.wire import paging
from workbench.services.access import permissions
from workbench.services.agents.rows import require_agent
from workbench.services.spaces.sessions import require_session
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import Query, beside

SQL = beside(__file__)
METADATA_BYTES = 10_000

_BEYOND = 2**63 - 1

Title = Annotated[str, Field(max_length=500, description="What it is about, in a few words.")]
Text = Annotated[str, Field(description="The text, for the agents that read it.")]
Metadata = Annotated[dict[str, Any], Field(description="Free-form, at most 10 kB of JSON.")]


class NewContext(Wire):
    """A context to create."""

    title: Title = ""
    content: Text = ""
    metadata: Metadata = Field(default_factory=dict)


class Context(Wire):
    """A context. `sequence_number` numbers the contexts of its session, from 1."""

    id: str
    project_id: str | None
    session_id: str | None
    session: str | None
    agent_id: str | None
    sequence_number: int | None
    title: str
    content: str
    metadata: dict[str, Any]
    created_at: Micros
    updated_at: Micros
    deleted_at: Micros | None


@dataclass(frozen=True, slots=True)
class ContextStamp:
    """The id of a context, its author with the author's team (None: the operator), and when it was written."""

    id: str
    agent: str | None
    team: str | None
    at: int


class Filters(Wire):
    """Filters for contexts."""

    session_id: str | None = None
    agent_id: str | None = None
    search: Annotated[str | None, Field(max_length=500)] = None
    title: Title | None = None
    sequence_after: Annotated[int | None, Field(ge=0, lt=_BEYOND)] = None


@op(
    allow=Level.READ,
    reads=True,
    command=Command("contexts show CONTEXT_ID", prints="{title}\n\n{content}"),
    rest=RestRoute("GET", "/contexts/{context_id}"),
)
async def get_context(ctx: Ctx, context_id: ContextId) -> Context:
    """Get a context that is visible to you, with its whole text."""

    def question(tx: Reader) -> Context:
        permissions.check(tx, ctx.caller, "read", "contexts")
        return _context(_visible(tx, ctx.caller, context_id))

    return await ctx.read(question)


@op(allow=Level.WORKER, command="contexts edit", rest=RestRoute("PATCH", "/contexts/{context_id}"))
async def update_context(
    ctx: Ctx,
    context_id: ContextId,
    title: Annotated[Title | None, SAID] = None,
    content: Annotated[Text | None, SAID] = None,
    metadata: Annotated[Metadata | None, SAID] = None,
) -> Context:
    """Change a context that you wrote; omitted arguments stay unchanged."""
    fields = {"title": title, "content": content, "metadata": metadata}
    changed = sorted(key for key, value in fields.items() if value is not None)

    def change(tx: Tx) -> Context:
        row = _own(tx, ctx.caller, context_id)
        if changed:
            columns = {"title": title, "content": _check_size(content, ctx.settings), "metadata": _as_json(metadata)}
            tx.run(SQL.update, columns, number=row["number"], now=tx.now)
            _emit(tx, "context.updated", row, changes=changed)
        return _context(_visible(tx, ctx.caller, context_id))

    return await ctx.write(change)


@op(
    allow=Level.WORKER,
    tool=False,
    command=Command("contexts delete CONTEXT_ID", "Deleted {context_id}. `contexts restore {id}` brings it back."),
    rest=RestRoute("DELETE", "/contexts/{context_id}"),
)
async def delete_context(ctx: Ctx, context_id: ContextId) -> Context:
    """Delete a context that you wrote. Its number is not reused; restore_context restores it."""

    def change(tx: Tx) -> Context:
        row = _own(tx, ctx.caller, context_id)
        tx.run(SQL.set_deleted, number=row["number"], at=tx.now)
        _emit(tx, "context.deleted", row)
        return _context(_visible(tx, ctx.caller, context_id, deleted=True))

    return await ctx.write(change)


@op(
    allow=Level.WORKER,
    tool=False,
    command=Command("contexts restore CONTEXT_ID", "Restored {context_id}."),
    rest=RestRoute("POST", "/contexts/{context_id}/restore"),
)
async def restore_context(ctx: Ctx, context_id: ContextId) -> Context:
    """Restore a deleted context with its number."""

    def change(tx: Tx) -> Context:
        row = _own(tx, ctx.caller, context_id, deleted=True)
        tx.run(SQL.set_deleted, number=row["number"], at=None)
        _emit(tx, "context.restored", row)
        return _context(_visible(tx, ctx.caller, context_id))

    return await ctx.write(change)


def add(tx: Tx, caller: Caller, settings: Settings, session: str, new: NewContext) -> tuple[str, int]:
    """Add a context to a session (by id), in the caller's transaction; its id and its number.

    Raises:
        NotFound: ``SESSION_NOT_FOUND``. BadInput: ``TOO_LARGE``, ``INVALID_ARGUMENTS``.
    """
    return add_written(tx, settings, session, new, ContextStamp(str(uuid7(tx.now)), caller.agent, caller.team, tx.now))


def add_written(tx: Tx, settings: Settings, session: str, new: NewContext, written: ContextStamp) -> tuple[str, int]:
    """Add a context that was written by an agent at a time; see `add`."""
    if not new.title.strip() and not (new.content.strip() if isinstance(new.content, str) else new.content):
        raise BadInput("INVALID_ARGUMENTS", "A context needs a title or content.", problems=[])
    values = {"title": new.title, "content": _check_size(new.content, settings), "metadata": _as_json(new.metadata)}
    counter = tx.one(SQL.next_number, session=session)
    if counter is None:
        raise NotFound("SESSION_NOT_FOUND", "The session was deleted. Ask the operator to restore it or to move you.")
    number = int(counter["contexts"])
    place = {"project": counter["project_id"], "session": session, "agent": written.agent, "sequence_number": number}
    tx.run(SQL.add, values | place, id=written.id, now=written.at)
    author = f"agent:{written.agent}" if written.agent else None
    about = {"sequence_number": number, "author": author, "team": written.team}
    tx.emit("context.written", f"context:{written.id}", session=session, **about)
    return written.id, number


def page(
    tx: Reader, caller: Caller, limit: int, cursor: str | None, filters: Filters, since: int | None = None
) -> tuple[list[Context], str | None]:
    """One page of the contexts that are visible to a caller, newest first, and the cursor of the next page.

    Raises:
        BadInput: ``BAD_CURSOR``. Refused: ``NOT_PERMITTED``, ``TOOL_DISABLED``.
        NotFound: ``SESSION_NOT_FOUND``, ``AGENT_NOT_FOUND``.
    """
    permissions.check(tx, caller, "read", "contexts")
    before = paging.decode(cursor, int)[0] if cursor else _BEYOND
    if (filters.search or "").strip() and not words(filters.search):
        return [], None
    values = {
        **caller.scope,
        "session": _session(tx, caller, filters),
        "agent": require_agent(tx, filters.agent_id)["id"] if filters.agent_id else None,
        "words": words(f"{filters.search or ''} {filters.title or ''}"),
        "title": filters.title,
        "sequence_after": filters.sequence_after,
        "since": since,
        "before": before,
        "limit": limit + 1,
    }
    numbers = {row["number"] for query, place in _searches(tx, caller, values) for row in tx.all(query, values | place)}
    newest = nlargest(limit + 1, numbers)
    rows = tx.all(SQL.rows, numbers=json.dumps(newest))
    page_rows, following = paging.cut(rows, limit, "number")
    return [_context(row) for row in page_rows], following


def _session(tx: Reader, caller: Caller, filters: Filters) -> str | None:
    """The session to search. A sequence number belongs to one session: without a session, to the caller's own."""
    if filters.session_id:
        return str(require_session(tx, filters.session_id, visible_to=caller)["id"])
    return caller.session if filters.sequence_after is not None else None


def _searches(tx: Reader, caller: Caller, values: Mapping[str, Any]) -> Iterator[tuple[Query, dict[str, Any]]]:
    """The queries that together find the contexts; each uses an index, so that none scans the history."""
    if values["words"]:
        yield SQL.with_words, {}
    elif values["sequence_after"] is not None and values["session"]:
        yield SQL.numbered_after, {}
    elif values["since"] is not None:
        yield SQL.changed, {}
    elif values["agent"]:
        yield SQL.of_agent, {}
    elif values["session"]:
        yield SQL.of_session, {}
    elif caller.level is Level.OPERATOR:
        yield SQL.newest, {}
    else:
        if values["my_session"]:
            yield SQL.of_session, {"session": values["my_session"]}
        for agent in _authors(tx, values):
            yield SQL.of_agent, {"agent": agent}


def _authors(tx: Reader, scope: Mapping[str, Any]) -> Sequence[str]:
    """The agents whose contexts are visible because of their author."""
    return [row["id"] for row in tx.all(SQL.authors, me=scope["me"], my_team=scope["my_team"])]


def _visible(tx: Reader, caller: Caller, context_id: str, *, deleted: bool = False) -> Row:
    row = tx.one(SQL.get, caller.scope, id=context_id, deleted=int(deleted))
    if row is None:
        kind = "deleted context" if deleted else "context"
        raise NotFound(
            "CONTEXT_NOT_FOUND",
            f"There is no {kind} {context_id!r} that is visible to you.",
            Hint("read", "`{}` lists contexts."),
        )
    return row


def _own(tx: Reader, caller: Caller, context_id: str, *, deleted: bool = False) -> Row:
    """A context that the caller may change: one that it wrote; the operator may change any."""
    permissions.check(tx, caller, "write", "contexts")
    row = _visible(tx, caller, context_id, deleted=deleted)
    if caller.level is not Level.OPERATOR and row["author"] != caller.agent:
        raise Refused(
            "FORBIDDEN", f"Context {context_id} was written by {row['agent_id'] or 'the operator'}. Write your own."
        )
    return row


def _check_size(content: str | None, settings: Settings) -> str | None:
    size = len((content or "").encode())
    if size > settings.max_context_bytes:
        raise BadInput(
            "TOO_LARGE",
            f"The content has {size:,} bytes; the limit is {settings.max_context_bytes:,}. "
            "Split it, or put it into a file and name the file.",
        )
    return content


def _as_json(metadata: Mapping[str, Any] | None) -> str | None:
    if metadata is None:
        return None
    encoded = to_json(metadata)
    if len(encoded) > METADATA_BYTES:
        raise BadInput("TOO_LARGE", f"metadata may have at most {METADATA_BYTES:,} bytes of JSON.")
    return encoded.decode()


def _emit(tx: Tx, kind: str, row: Row, **data: object) -> None:
    author = f"agent:{row['author']}" if row["author"] else None
    about = {"sequence_number": row["sequence_number"], "author": author, "team": row["team"]}
    tx.emit(kind, f"context:{row['id']}", session=row["session_id"], **about, **data)


def _context(row: Row) -> Context:
    values = {name: row[name] for name in Context.model_fields}
    return Context(**{**values, "metadata": json.loads(row["metadata"])})

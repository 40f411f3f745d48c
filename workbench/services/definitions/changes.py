"""Reading and changing definitions: the change of the files first, then its record in the store and its event."""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Literal

from workbench.definition_files import DefinitionChange, DefinitionDirectory, RegistryDraft, Snapshot
from workbench.errors import Conflict, NotFound, Unavailable, WorkbenchError
from workbench.ops import Ctx
from workbench.ops.duties import duty
from workbench.rules.definitions.composition import content_hash
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.secrets import written_out
from workbench.rules.definitions.secrets.written_out import warnings_of
from workbench.services.definitions import tool_names, trust
from workbench.services.definitions.operation import DefinitionChanged, validated
from workbench.services.definitions.trust import DefinitionOrigin, Writing
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

_REPLACING = (
    *(SQL.replace_in_versions, SQL.replace_in_agents, SQL.replace_in_attempts, SQL.replace_in_trust),
    *(SQL.replace_in_calls, SQL.replace_in_conversations, SQL.replace_in_personalities, SQL.forget_id),
)
Action = Literal["created", "changed", "deleted", "found"]
Record = Callable[[Tx], None]
"""Writes a version to the store."""

log = logging.getLogger(__name__)


async def read(ctx: Ctx, target: str) -> Snapshot:
    """A definition by its path, id or name, with its secrets. What others changed in it since is recorded.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``. BadInput: ``AMBIGUOUS_TARGET``, ``INVALID_PATH``, ``INVALID_CONFIGURATION``.
        Unavailable: ``DEFINITION_BUSY``.
    """
    snapshot = await to_thread(ctx.definitions.get, target)
    await note(ctx, snapshot)
    return snapshot


async def without_secrets(ctx: Ctx, target: str) -> Definition:
    """A definition as it is shown: without its secrets. It raises what `read` raises."""
    return written_out.masked((await read(ctx, target)).definition)


async def current(ctx: Ctx, definition_id: str, path: str | None) -> Snapshot:
    """The definition with an id, as it is now.

    Args:
        path: where it was; copies of a directory have the same id.

    Raises:
        WorkbenchError: see `read`.
    """
    if path is not None:
        with suppress(NotFound):
            snapshot = await read(ctx, path)
            if snapshot.definition.metadata.id == definition_id:
                return snapshot
    directory = await to_thread(ctx.definitions.find_id, definition_id)
    return await read(ctx, directory.key)


@duty("noting definitions", lambda settings: settings.definition_watch_seconds, share=0.05)
async def note_unseen(ctx: Ctx) -> None:
    """Record the definitions that no operation has read yet, such as those that git brought: grants may name them."""
    listing = await to_thread(ctx.definitions.listing)
    recorded_ids = {row["id"] for row in await ctx.read(lambda tx: tx.all(SQL.known))}
    for path, metadata in listing.found:
        if metadata.id not in recorded_ids:
            with suppress(WorkbenchError):  # by now it has been deleted, or cannot be read
                await read(ctx, path)


async def note(ctx: Ctx, snapshot: Snapshot) -> None:
    """Record a definition, if what it says is not the version that was recorded last."""
    if not _is_recorded(snapshot, await last(ctx, snapshot.definition.metadata.id)):
        await ctx.local.repositories.shielded(_note(ctx, snapshot))


async def _note(ctx: Ctx, snapshot: Snapshot) -> None:
    try:
        directory = await to_thread(ctx.definitions.find, str(snapshot.path))
        async with exclusive(ctx, directory):  # after the record of a change that was just made
            await _record_found(ctx, await to_thread(ctx.definitions.read, directory))
    except (Unavailable, Conflict):  # it cannot be locked, nor changed here
        await _record_found(ctx, snapshot)
    except WorkbenchError:  # by now it has been deleted, or cannot be read
        return


async def _record_found(ctx: Ctx, snapshot: Snapshot) -> None:
    if isinstance(ctx.definitions, RegistryDraft) and ctx.definitions.is_drafted(snapshot):
        return
    row = await last(ctx, snapshot.definition.metadata.id)
    if not _is_recorded(snapshot, row):
        await save(ctx, _version(ctx, snapshot, "found", "changed outside of Workbench" if row else "found"))


async def last(ctx: Ctx, definition_id: str) -> Row | None:
    """The last record of the definition with an id: its `hash`, and when it was deleted (`deleted_at`)."""
    return await ctx.read(lambda tx: tx.one(SQL.last, id=definition_id))


def _is_recorded(snapshot: Snapshot, last: Row | None) -> bool:
    return last is not None and (last["hash"], last["deleted_at"]) == (snapshot.hash, None)


async def change(
    ctx: Ctx,
    target: str,
    edit: Callable[[Definition], Definition],
    summary: str,
    origin: DefinitionOrigin = trust.WRITTEN,
) -> DefinitionChanged:
    """Change a definition.

    Args:
        edit: from the definition as it is to the one it shall be. An error that it raises changes nothing.
        summary: what is changed, such as ``rule be-polite added``.
        origin: where what is new comes from, which decides what of it is trusted.

    Raises:
        WorkbenchError: see `read`, and what `edit` raises. Conflict: ``TOOL_NAME_TAKEN``.
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    change = await ctx.local.repositories.shielded(_change(ctx, target, edit, summary, origin))
    after = change.after.definition
    return DefinitionChanged(message=f"{after.metadata.name}: {summary}.", warnings=warnings_of(after, change.before))


async def _change(
    ctx: Ctx, target: str, edit: Callable[[Definition], Definition], summary: str, origin: DefinitionOrigin
) -> DefinitionChange:
    def edited(before: Definition) -> Definition:
        after = written_out.unmasked_texts(edit(before), before)
        tool_names.require_unlike_servers(ctx, before, after)
        return after

    directory = await to_thread(ctx.definitions.find, target)
    async with exclusive(ctx, directory, begun=True):
        change = await to_thread(ctx.definitions.change, directory, edited)
        if change.before != change.after.definition:
            before = replace(change.after, definition=change.before, hash=content_hash(change.before))
            await _record_found(ctx, before)
            revision = await trust.writing(ctx, change.before, change.after, origin)
            await record(ctx, change.after, "changed", summary, revision)
        return change


@asynccontextmanager
async def exclusive(ctx: Ctx, *directories: DefinitionDirectory, begun: bool = False) -> AsyncIterator[None]:
    """Exclusive access to definitions, so that their versions are recorded in the order of their changes.

    Only for work that is shielded: the locks that a thread acquires must be released. A draft locks nothing.

    Args:
        begun: they exist; no lock is made where nothing is.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``.
    """
    if isinstance(ctx.definitions, RegistryDraft):
        yield
        return
    async with ctx.definitions.changing:
        locks = ExitStack()
        try:
            for directory in sorted(directories, key=lambda one: one.path):
                if begun:
                    await to_thread(directory.require_begun)
                await to_thread(locks.enter_context, directory.locked())
            yield
        finally:
            await to_thread(locks.close)


async def create(
    ctx: Ctx, path: str, definition: Definition, summary: str, origin: DefinitionOrigin = trust.WRITTEN
) -> Snapshot:
    """Write a new definition.

    Args:
        origin: where its content comes from, which decides what of it is trusted.

    Raises:
        BadInput: ``INVALID_PATH``. Conflict: ``AGENT_EXISTS``, ``TOOL_NAME_TAKEN``.
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    return await ctx.local.repositories.shielded(_create(ctx, path, definition, summary, origin))


async def _create(ctx: Ctx, path: str, definition: Definition, summary: str, origin: DefinitionOrigin) -> Snapshot:
    await to_thread(tool_names.require_unlike_servers, ctx, None, definition)
    directory = await to_thread(ctx.definitions.vacant, path)
    async with exclusive(ctx, directory):
        snapshot = await to_thread(ctx.definitions.create, directory, definition)
        await record(ctx, snapshot, "created", summary, await trust.writing(ctx, None, snapshot, origin))
        return snapshot


async def remove(ctx: Ctx, target: str) -> tuple[Snapshot, list[str]]:
    """Delete a definition; what it was, and the files that stay because they are not of the definition.

    Raises:
        WorkbenchError: see `read`. Unavailable: ``PROJECT_UNWRITABLE``.
    """
    return await ctx.local.repositories.shielded(_remove(ctx, target))


async def _remove(ctx: Ctx, target: str) -> tuple[Snapshot, list[str]]:
    directory = await to_thread(ctx.definitions.find, target)
    async with exclusive(ctx, directory, begun=True):
        snapshot, left = await to_thread(ctx.definitions.remove, directory)
        await record(ctx, snapshot, "deleted", "deleted")
        return snapshot, left


async def record(
    ctx: Ctx,
    snapshot: Snapshot,
    action: Action,
    summary: str,
    revision: Writing | None = None,
    replaces: str | None = None,
) -> None:
    """Record a version of a definition; that of a draft is recorded when the draft is committed.

    Args:
        revision: the change that the caller wrote, of which something may be trusted; None: somebody else wrote it.
        replaces: the id that it had before: all that was recorded of that is recorded of the new one.
    """
    version = _version(ctx, snapshot, action, summary, revision, replaces)
    if isinstance(ctx.definitions, RegistryDraft):
        ctx.definitions.records.append(version)
    else:
        await save(ctx, version)


async def save(ctx: Ctx, *versions: Record) -> None:
    """Write versions to the store. The files are what counts: if the store fails, that is only logged, and they are
    recorded when the definitions are next read.
    """
    try:
        await ctx.write(lambda tx: [version(tx) for version in versions])
    except Unavailable:
        log.warning("versions of definitions could not be recorded", exc_info=True)


def _version(
    ctx: Ctx,
    snapshot: Snapshot,
    action: Action,
    summary: str,
    revision: Writing | None = None,
    replaces: str | None = None,
) -> Record:
    definition, path = snapshot.definition, ctx.definitions.display_path(snapshot.path)
    content = written_out.masked(definition).model_dump_json(by_alias=True)
    values = {"id": definition.metadata.id, "name": definition.metadata.name, "path": path, "hash": snapshot.hash}

    def write(tx: Tx) -> None:
        tx.run(SQL.save, values, now=tx.now, deleted=tx.now if action == "deleted" else None)
        if replaces:
            _replace_id(tx, replaces, values["id"])
        tx.run(SQL.keep_content, hash=snapshot.hash, content=content)
        tx.run(SQL.keep_version, values, action=action, summary=summary, by=tx.actor, now=tx.now)
        facts = {"name": values["name"], "path": path, "hash": snapshot.hash, "summary": summary}
        tx.emit(f"definition.{action}", f"definition:{values['id']}", **facts)
        if revision is not None:
            trust.record_written(tx, ctx.caller, revision)
        if action == "deleted":
            trust.record_deleted(tx, values["id"])

    return write


def _replace_id(tx: Tx, old: str, new: str) -> None:
    """Move the records of one id to another."""
    trust.close_question(tx, old)
    for statement in _REPLACING:
        tx.run(statement, old=old, new=new)


def updated(definition: Definition, **parts: Any) -> Definition:
    """A definition with other parts, such as `rules`, validated as a whole.

    Raises:
        BadInput: ``VALIDATION_ERROR``.
    """
    current = {name: getattr(definition, name) for name in Definition.model_fields}
    return validated(Definition, current | parts)

"""The versions of a definition: those that were recorded, and those that git has; and how they differ."""

from __future__ import annotations

import json
import re
from asyncio import to_thread
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, ValidationError

from workbench.definition_files import Snapshot, committed
from workbench.definition_files.committed import Committed
from workbench.errors import BadInput, NotFound, Unavailable, WorkbenchError
from workbench.model import iso
from workbench.ops import Ctx
from workbench.rules.definitions import comparison, former_settings
from workbench.rules.definitions.composition import content_hash
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.names import is_id
from workbench.rules.definitions.secrets.masked_updates import require_no_masks, restored
from workbench.rules.definitions.secrets.written_out import warnings_of
from workbench.services.definitions import changes
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, DefinitionChanged, definition_op
from workbench.services.definitions.trust import FOREIGN
from workbench.store.base import Row
from workbench.store.queries import beside

SQL = beside(__file__)

COMMITTED = "HEAD"
_PREFIX = re.compile(r"[0-9a-f]{4,64}")
_FILES = "files"
"""The version of a definition that is not recorded: its files as they are."""


class DefinitionVersion(DefinitionAnswer):
    """What a definition said from a time on.

    `contentHash` identifies what it said; null if the files of a commit cannot be read. `source`: recorded by
    Workbench, with `action`; or a commit. `by`: null if Workbench found the change, which somebody made without it.
    """

    content_hash: str | None
    source: Literal["workbench", "git"]
    at: str
    by: str | None
    summary: str
    action: str | None = None
    commit: str | None = None


class DefinitionVersions(DefinitionAnswer):
    """The versions of a definition, newest first. `contentHash` is that of its files as they are; null if they cannot
    be read. `committed`: whether the last commit says the same; null without one. `message`: what is left out.
    """

    versions: list[DefinitionVersion]
    count: int
    content_hash: str | None
    committed: bool | None
    message: str | None = None


class Side(DefinitionAnswer):
    """A version that is compared: `version` is ``files``, a commit, or a content hash."""

    path: str
    version: str
    content_hash: str


class ChangedFile(DefinitionAnswer):
    """A file that differs. `patch` is a unified diff; null if it is too long."""

    path: str
    status: comparison.Status
    patch: str | None


class Diff(DefinitionAnswer):
    """How a version differs from another. Secrets are masked."""

    from_: Side = Field(alias="from")
    to: Side
    equal: bool
    changes: list[ChangedFile]


class _Target(NamedTuple):
    """A definition whose versions are asked for. It may have been deleted, or be unreadable.

    Args:
        path: of its directory.
    """

    id: str
    path: Path
    snapshot: Snapshot | None


VersionName = Annotated[str | None, Field(min_length=4, max_length=64, pattern=r"^([0-9a-f]+|HEAD|files)$")]


@definition_op(reads=True, command="define history")
async def agent_history(
    ctx: Ctx,
    agentTarget: AgentTarget,
    limit: Annotated[int, Field(ge=1, le=100, description="Most versions to list.")] = 20,
) -> DefinitionVersions:
    """List the versions of an agent definition, newest first: changes that were recorded, and commits of git.

    Also of a definition that was deleted, or cannot be read. Compare versions with agent_diff.
    """
    target = await _find_target(ctx, agentTarget)
    rows = await ctx.read(lambda tx: tx.all(SQL.recorded, id=target.id, limit=limit))
    message = None
    commits: list[Committed] = []
    try:
        commits = await to_thread(committed.versions, target.path, limit)
    except Unavailable as error:
        message = f"The commits are left out: {error.message}"
    versions = [*map(_recorded_version, rows), *map(_committed_version, commits)]
    newest = sorted(versions, key=lambda version: version.at, reverse=True)[:limit]
    present = target.snapshot.hash if target.snapshot else None
    return DefinitionVersions(
        versions=newest,
        count=len(newest),
        content_hash=present,
        committed=_hash(commits[0].definition) == present if commits and present else None,
        message=message,
    )


@definition_op(reads=True, command="define diff")
async def agent_diff(
    ctx: Ctx,
    agentTarget: AgentTarget,
    fromVersion: Annotated[
        VersionName, Field(description="contentHash or commit of agent_history, HEAD or files; null: the one before.")
    ] = None,
    toVersion: Annotated[VersionName, Field(description="The same; null: the files as they are.")] = None,
    otherAgent: Annotated[AgentTarget | None, Field(description="Compare with a version of this agent.")] = None,
) -> Diff:
    """Compare two versions of an agent definition, or of two definitions, as unified diffs of their files.

    Without versions: what is not committed yet; without git, what the last recorded change did.
    """
    target = await _find_target(ctx, agentTarget)
    other = await _find_target(ctx, otherAgent) if otherAgent else target
    start = fromVersion or (_FILES if otherAgent else await _version_before(ctx, target))
    old_version, old = await _version(ctx, target, start)
    new_version, new = await _version(ctx, other, toVersion or _FILES)
    files = await to_thread(comparison.differences, old, new)
    return Diff(
        from_=_side(ctx, target, old_version, old),
        to=_side(ctx, other, new_version, new),
        equal=not files,
        changes=[ChangedFile(path=file.path, status=file.status, patch=file.patch) for file in files],
    )


@definition_op(tool=False, command="define restore")
async def agent_restore(
    ctx: Ctx,
    agentTarget: AgentTarget,
    version: Annotated[
        str,
        Field(
            min_length=4,
            max_length=64,
            pattern=r"^([0-9a-f]+|HEAD)$",
            description="contentHash or commit of agent_history, or HEAD.",
        ),
    ],
) -> DefinitionChanged:
    """Give an agent definition back what a version of it said; also one whose files were deleted.

    Versions have no secrets: where one is masked, what is there now stays. The operator is asked to trust what the
    version needs and the definition is not trusted with.
    """
    target = await _find_target(ctx, agentTarget)
    name, former = await _version(ctx, target, version)
    summary = f"version {name[:16]} restored"
    if target.snapshot is not None:

        def edit(present: Definition) -> Definition:
            kept = {"id": present.metadata.id, "created": present.metadata.created}
            return restored(former.model_copy(update={"metadata": former.metadata.model_copy(update=kept)}), present)

        return await changes.change(ctx, agentTarget, edit, summary, FOREIGN)
    require_no_masks(former)
    metadata = former.metadata.model_copy(update={"id": target.id})
    path = ctx.definitions.display_path(target.path)
    snapshot = await changes.create(ctx, path, former.model_copy(update={"metadata": metadata}), summary, FOREIGN)
    return DefinitionChanged(message=f"{metadata.name}: {summary}.", warnings=warnings_of(snapshot.definition))


async def _find_target(ctx: Ctx, target: str) -> _Target:
    """A definition by its path, id or name; by its recorded one if it was deleted or cannot be read.

    Raises:
        WorkbenchError: see `changes.read`.
    """
    try:
        snapshot = await changes.read(ctx, target)
        return _Target(snapshot.definition.metadata.id, snapshot.path, snapshot)
    except WorkbenchError as error:
        if error.code not in ("AGENT_NOT_FOUND", "INVALID_CONFIGURATION"):
            raise
        path = _display_path(ctx, target)
        rows = await ctx.read(lambda tx: tx.all(SQL.known, wanted=path, id=path if is_id(path) else None))
        if len(rows) != 1:
            raise
        return _Target(rows[0]["id"], ctx.definitions.place(rows[0]["path"]), None)


def _display_path(ctx: Ctx, target: str) -> str:
    """A target as it is recorded, if it is a path."""
    with suppress(BadInput):
        if "/" in target:
            return ctx.definitions.display_path(ctx.definitions.place(target))
    return target


async def _version_before(ctx: Ctx, target: _Target) -> str:
    """The version with which the files are compared: the last commit, or the version that was recorded before."""
    with suppress(Unavailable):
        if await to_thread(committed.versions, target.path, 1):
            return COMMITTED
    rows = await ctx.read(lambda tx: tx.all(SQL.recorded, id=target.id, limit=100))
    present = target.snapshot.hash if target.snapshot else None
    return next((row["hash"] for row in rows if row["hash"] != present), _FILES)


async def _version(ctx: Ctx, target: _Target, name: str) -> tuple[str, Definition]:
    """A version and its full name.

    Raises:
        NotFound: ``VERSION_NOT_FOUND``. BadInput: ``INVALID_CONFIGURATION``. Unavailable: ``GIT_FAILED``.
    """
    if name == _FILES:
        if target.snapshot is None:
            raise NotFound("VERSION_NOT_FOUND", "Its files are deleted or cannot be read. Compare recorded versions.")
        return name, target.snapshot.definition
    if _PREFIX.fullmatch(name):
        rows = await ctx.read(lambda tx: tx.all(SQL.contents, id=target.id, prefix=name))
        if len(rows) > 1:
            raise NotFound("VERSION_NOT_FOUND", f"Several versions begin with {name}. Give more of its digits.")
        if rows:
            return rows[0]["hash"], _read_content(rows[0])
    return await to_thread(committed.version, target.path, name)


def _read_content(row: Row) -> Definition:
    content = json.loads(row["content"])
    try:
        return Definition.model_validate(content | {"settings": former_settings.stated(content.get("settings", {}))})
    except ValidationError:
        text = f"Version {row['hash']} is no valid definition in this version of Workbench. Compare others."
        raise BadInput("INVALID_CONFIGURATION", text) from None


def _hash(definition: Definition | None) -> str | None:
    return content_hash(definition) if definition else None


def _recorded_version(row: Row) -> DefinitionVersion:
    return DefinitionVersion(
        content_hash=row["hash"],
        source="workbench",
        at=iso(row["saved_at"]),
        by=None if row["action"] == "found" else row["saved_by"],
        summary=row["summary"],
        action=row["action"],
    )


def _committed_version(version: Committed) -> DefinitionVersion:
    commit = version.revision
    return DefinitionVersion(
        content_hash=_hash(version.definition),
        source="git",
        at=iso(commit.at_us),
        by=commit.author,
        summary=commit.subject,
        commit=commit.id,
    )


def _side(ctx: Ctx, target: _Target, version: str, definition: Definition) -> Side:
    return Side(path=ctx.definitions.display_path(target.path), version=version, content_hash=content_hash(definition))

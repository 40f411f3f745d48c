"""Masks known secrets in what was recorded before they were masked; runs once in the life of a project."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from workbench.errors import WorkbenchError
from workbench.ops import Ctx
from workbench.ops.duties import prepares
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.secrets import written_out
from workbench.services.access import secret_marks
from workbench.services.conversations.ending import without_secrets
from workbench.services.spawning import request
from workbench.services.spawning.request import SQL, SpawnRequest
from workbench.store.migrate import Script
from workbench.trust.known_secrets import KnownSecrets

SCRIPT = Script("older_records", Path(__file__).with_suffix(".sql").read_text("utf-8"))

log = logging.getLogger(__name__)


@prepares
async def mask(ctx: Ctx) -> None:
    """Mask older records and logs, unless that was done before. What fails is done when the project is opened next."""
    if await ctx.read(lambda tx: tx.one(SQL.masked_records)):
        return
    log.warning("masking secrets in older records; this happens once, and takes a while if there are many")
    try:
        await _learn(ctx)
        secrets = ctx.secrets
        functions: dict[str, Callable[..., Any]] = {
            "masked": partial(masked, secrets),
            "history": partial(_mask_history, secrets),
            "definition": masked_definition,
        }
        await ctx.store.rewrite(SCRIPT, functions)
        written = {row["file"] for row in await ctx.read(lambda tx: tx.all(SQL.written_logs))}
        await asyncio.to_thread(_mask_logs, secrets, ctx.settings.logs, written)
        await ctx.write(lambda tx: tx.run(SQL.note_masked_records, now=tx.now))
    except WorkbenchError:
        log.warning("older records are not masked yet", exc_info=True)


async def _learn(ctx: Ctx) -> None:
    """Learn the secrets of all agents that were spawned, and those that definitions had written out."""
    for spawn in await ctx.read(lambda tx: tx.all(SQL.all_spawned)):
        with suppress(WorkbenchError):  # its variables are lost, or its profile
            await request.environment_of(ctx, spawn["agent_id"], SpawnRequest.of(spawn))
    for row in await ctx.read(lambda tx: tx.all(SQL.definition_contents)):
        if (definition := _definition(row["content"])) is not None:
            await secret_marks.learn(ctx, written_out.values(definition))


def masked(secrets: KnownSecrets, text: str | None) -> str | None:
    """A text, or JSON, without secrets; JSON stays JSON."""
    return _rewrite(text, secrets.masked, otherwise=secrets.masked)


def masked_definition(text: str) -> str:
    """A version of a definition without the secrets that it had written out."""
    definition = _definition(text)
    if definition is None or (clean := written_out.masked(definition)) == definition:
        return text
    return clean.model_dump_json(by_alias=True)


def _mask_history(secrets: KnownSecrets, text: str | None) -> str | None:
    try:
        return _rewrite(text, partial(without_secrets, secrets))
    except (KeyError, TypeError):  # it is no history of today's form
        return masked(secrets, text)


def _rewrite(text: str | None, change: Callable[[Any], Any], otherwise: Callable[[str], Any] = str) -> str | None:
    """JSON with its value changed; as it was if that changes nothing. What is no JSON is changed as a text."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return str(otherwise(text))
    changed = change(json.loads(text))
    return text if changed == value else json.dumps(changed, ensure_ascii=False)


def _definition(text: str) -> Definition | None:
    try:
        return Definition.model_validate_json(text)
    except ValidationError:
        return None


def _mask_logs(secrets: KnownSecrets, logs: Path, written: set[str]) -> None:
    """Mask the logs of what has ended: agents, and calls of functions.

    Args:
        written: the names, without suffix, of those that are still being written.
    """
    for file in logs.rglob("*.log"):
        if file.stem in written or file.is_symlink():
            continue
        with suppress(OSError):
            secrets.mask_file(file)

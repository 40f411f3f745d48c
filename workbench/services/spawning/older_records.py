"""Masks, once in the life of a project, what was recorded before secrets were masked, where they are still known."""

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
        known = ctx.secrets
        functions: dict[str, Callable[..., Any]] = {
            "masked": partial(masked, known),
            "history": partial(_masked_history, known),
            "definition": masked_definition,
        }
        await ctx.store.rewrite(SCRIPT, functions)
        written = {row["file"] for row in await ctx.read(lambda tx: tx.all(SQL.written_logs))}
        await asyncio.to_thread(_mask_logs, known, ctx.settings.logs, written)
        await ctx.write(lambda tx: tx.run(SQL.note_masked_records, now=tx.now))
    except WorkbenchError:
        log.warning("older records are not masked yet", exc_info=True)


async def _learn(ctx: Ctx) -> None:
    """Learn the secrets of all agents that were spawned, and those that definitions had written out."""
    for spawn in await ctx.read(lambda tx: tx.all(SQL.all_spawned)):
        with suppress(WorkbenchError):  # its variables are lost, or its profile
            await request.environment_of(ctx, spawn["agent_id"], SpawnRequest.of(spawn))
    for row in await ctx.read(lambda tx: tx.all(SQL.definition_contents)):
        if (found := _definition(row["content"])) is not None:
            await secret_marks.learn(ctx, written_out.values(found))


def masked(known: KnownSecrets, text: str | None) -> str | None:
    """A text, or JSON, without secrets; JSON stays JSON."""
    return _changed(text, known.masked, otherwise=known.masked)


def masked_definition(text: str) -> str:
    """A version of a definition without the secrets that it had written out."""
    found = _definition(text)
    if found is None or (shown := written_out.masked(found)) == found:
        return text
    return shown.model_dump_json(by_alias=True)


def _masked_history(known: KnownSecrets, text: str | None) -> str | None:
    try:
        return _changed(text, partial(without_secrets, known))
    except (KeyError, TypeError):  # it is no history of today's form
        return masked(known, text)


def _changed(text: str | None, change: Callable[[Any], Any], otherwise: Callable[[str], Any] = str) -> str | None:
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


def _mask_logs(known: KnownSecrets, logs: Path, written: set[str]) -> None:
    """Mask the logs of what has ended: agents, and calls of functions.

    Args:
        written: the names, without suffix, of those that are still being written.
    """
    for file in logs.rglob("*.log"):
        if file.stem in written or file.is_symlink():
            continue
        with suppress(OSError):
            known.mask_file(file)

"""The answer of a model that is chosen by name, for callers on an event loop: the libraries are imported in a thread.

This module imports nothing that takes long; everything else of the engine is reached through it or imported by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from workbench.errors import WorkbenchError
from workbench.providers import models
from workbench.providers.frames import Frame, History, Retrying
from workbench.providers.models import model, not_installed
from workbench.providers.question import AnswerLimits, ModelQuestion
from workbench.providers.tools import Toolbox
from workbench.rules.definitions.secrets.written_out import is_secret
from workbench.rules.secrets.mask import Mask


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model answers.

    Args:
        name: ``provider:model``.
        config: the provider's configuration, with its secrets.
        settings: those of the definition; some are the provider's own, such as `script` of the provider `test`.
    """

    name: str
    config: Mapping[str, str]
    settings: Mapping[str, Any]


async def answer(
    choice: ModelChoice, question: ModelQuestion, toolbox: Toolbox, limits: AnswerLimits = AnswerLimits()
) -> AsyncGenerator[Frame, None]:
    """See `engine.answer`. The first answer of a process takes seconds longer, in which the loop stays free.

    What the provider reports of its failures is without the secrets of its configuration.

    Raises:
        WorkbenchError: see `models.model` and `engine.answer`.
    """
    try:
        async with aclosing(_answer(choice, question, toolbox, limits)) as frames:
            async for frame in frames:
                yield replace(frame, message=_redacted(choice, frame.message)) if type(frame) is Retrying else frame
    except WorkbenchError as error:
        error.mask(partial(_redacted, choice))
        raise


async def _answer(
    choice: ModelChoice, question: ModelQuestion, toolbox: Toolbox, limits: AnswerLimits
) -> AsyncGenerator[Frame, None]:
    engine = await asyncio.to_thread(_imported, "engine")
    chosen = await asyncio.to_thread(model, choice.name, choice.config, choice.settings)
    async with aclosing(engine.answer(chosen, question, toolbox, limits)) as frames:
        async for frame in frames:
            yield frame


async def extended(history: History | None, prompt: str, frames: Iterable[Frame]) -> History:
    """See `transcript.extended`.

    Raises:
        Conflict: ``HISTORY_UNREADABLE``. Unavailable: ``CHAT_NOT_INSTALLED``.
    """
    found: History = (await asyncio.to_thread(_imported, "transcript")).extended(history, prompt, frames)
    return found


def _redacted(choice: ModelChoice, text: str) -> str:
    provider = choice.name.partition(":")[0]
    return Mask([value for key, value in choice.config.items() if is_secret(provider, key)]).text(text)


async def load(choice: ModelChoice) -> None:
    """Import what an answer of a model needs, in a thread. The first time in a process this takes seconds.

    Raises:
        WorkbenchError: see `models.model`.
    """
    await asyncio.to_thread(_imported, "engine")
    await asyncio.to_thread(model, choice.name, choice.config, choice.settings)


async def known_models() -> list[str]:
    """See `models.known_models`; none if chat is not installed."""
    try:
        return await asyncio.to_thread(models.known_models)
    except ImportError:
        return []


def _imported(name: str) -> Any:
    try:
        return import_module(f"workbench.providers.{name}")
    except ImportError as error:
        raise not_installed(error) from None

"""The model of a definition, ready to be asked: its provider is trusted, and the provider's secrets are read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.definition_files import Snapshot
from workbench.errors import BadInput, Conflict, Unavailable
from workbench.ops import Ctx
from workbench.providers.answers import ModelChoice
from workbench.providers.frames import Completed, End
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.providers import ALIASES, PROVIDERS, check, provider_id
from workbench.rules.definitions.secrets.written_out import is_secret
from workbench.rules.definitions.trust import PROMPT
from workbench.rules.secrets.mask import Mask
from workbench.services.access import secret_marks
from workbench.services.definitions import secrets, trust


@dataclass(frozen=True, slots=True, repr=False)
class ReadyModel:
    """A model that can be asked. It has no representation that shows its secrets.

    Args:
        choice: as the engine takes it.
        secrets: those of its provider.
    """

    choice: ModelChoice
    secrets: frozenset[str]

    def redacted(self, text: str) -> str:
        """A text of the provider, with its secrets masked."""
        return Mask(self.secrets).text(text)


async def ready(ctx: Ctx, snapshot: Snapshot | None, chosen: str | None = None) -> ReadyModel:
    """The model of a definition, or the one that was chosen instead.

    A provider that the definition does not configure is configured by the environment variables of the server.

    Raises:
        BadInput: ``MODEL_REQUIRED``, ``PROVIDER_UNKNOWN``, ``INVALID_CONFIGURATION``.
        Refused: ``DEFINITION_NOT_TRUSTED``. Unavailable: ``SECRET_UNRESOLVED``.
    """
    name = chosen or (snapshot.definition.settings.model if snapshot else "")
    if not name:
        raise BadInput("MODEL_REQUIRED", "No model is set. Set one, as provider:model.")
    if snapshot is not None:
        await trust.require(ctx, snapshot, PROMPT)
    provider = provider_id(name.partition(":")[0])
    config, values = await _configuration(ctx, snapshot, provider)
    await secret_marks.learn(ctx, values)
    check(provider, config)
    settings = snapshot.definition.settings.model_dump(by_alias=True) if snapshot else {}
    return ReadyModel(ModelChoice(name, config, settings), values)


def sampling(definition: Definition) -> dict[str, Any]:
    """The settings of a definition as arguments of `Question`; None for what is not set."""
    return definition.settings.model_dump(by_alias=False, include={"temperature", "top_p", "max_output_tokens"})


def require_whole(completed: Completed) -> None:
    """Refuse an answer of which something is missing, unless it is as long as its limit allows.

    Raises:
        Unavailable: ``ANSWER_CUT``. Conflict: ``CONTENT_FILTERED``.
    """
    match completed.end:
        case End.CUT:
            raise Unavailable("ANSWER_CUT", "The connection ended before the answer did. Try again.")
        case End.FILTERED:
            raise Conflict("CONTENT_FILTERED", "The provider's filter stopped the answer.")


async def _configuration(
    ctx: Ctx, snapshot: Snapshot | None, provider: str
) -> tuple[Mapping[str, str], frozenset[str]]:
    """The configuration of a provider with its secrets, and the secrets."""
    for key in snapshot.definition.providers if snapshot else ():
        if snapshot is not None and ALIASES.get(key, key) == provider:
            await trust.require(ctx, snapshot, f"providers.{key}")
            resolved = await secrets.resolved(ctx, snapshot.definition, providers=(key,), servers=())
            return resolved.providers[key], resolved.values
    keys = [value.key for value in PROVIDERS[provider].config_values]
    config = {key: os.environ[key] for key in keys if os.environ.get(key)}
    return config, frozenset(value for key, value in config.items() if is_secret(provider, key))

"""Which provider of models answers, and with which of the person's keys: kept ones, then those in the server's
environment. No operation takes or returns a key."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field

from workbench.definition_files import model_keys
from workbench.errors import Unavailable
from workbench.model import Level, Wire
from workbench.ops import Columns, Command, Ctx, op
from workbench.providers.gateway import AgentKeys
from workbench.rules.models.upstream import PROVIDERS, ProviderKey, base_in, is_key, key_in
from workbench.services.access import secret_marks


class ModelKey(Wire):
    """A provider of models, and the key with which the gateway asks it.

    `source`: where the key is kept; null: there is none, and agents have to sign in themselves. `address`: the
    provider's host. `state`: what came of its last use; `detail` says it in a sentence.
    """

    provider: str
    source: str | None
    address: str
    state: Literal["none", "unreadable", "untried", "accepted", "refused", "unclear", "unreachable"]
    detail: str


class ModelKeys(Wire):
    """The providers by id."""

    SHOWN: ClassVar = Columns("keys", "provider state source address detail", "There are no providers.")

    keys: list[ModelKey]


@op(allow=Level.OPERATOR, reads=True, tool=False, command=Command("keys list"))
async def list_model_keys(ctx: Ctx) -> ModelKeys:
    """List the providers of models, where the key of each is kept, and whether it was accepted when it was last used.

    Keys are kept by `workbench keys add`; else the server takes ANTHROPIC_API_KEY, OPENAI_API_KEY and GEMINI_API_KEY
    from its environment. A key is never shown, and no agent gets it: agents ask the server for models.
    """
    return await _listed(ctx)


@op(allow=Level.OPERATOR, tool=False, command=Command("keys check"))
async def check_model_keys(
    ctx: Ctx,
    seconds: Annotated[float, Field(gt=0, le=60, description="How long each provider may take.")] = 10.0,
) -> ModelKeys:
    """Try every key with one request to its provider, which lists its models and costs nothing."""
    found = await _found(ctx, os.environ)
    await try_keys(ctx, [key for key in found.values() if isinstance(key, ProviderKey)], seconds)
    ctx.local.gateway.keys.clear()
    return await _listed(ctx)


async def try_keys(ctx: Ctx, keys: Iterable[ProviderKey], seconds: float) -> None:
    """Try keys at once, and note what came of it."""

    async def attempt(key: ProviderKey) -> None:
        trial = await model_keys.try_key(key, seconds)
        ctx.local.gateway.note(key, trial.state, trial.detail)

    await asyncio.gather(*map(attempt, keys))


async def person_keys(
    ctx: Ctx, variables: Mapping[str, str] = os.environ, providers: Collection[str] = PROVIDERS
) -> AgentKeys:
    """The keys that the person has for all agents, by provider; what is read is masked from now on.

    Args:
        variables: hers, with the addresses of providers.
        providers: those whose keys are asked for.

    Raises:
        Unavailable: ``KEYS_UNREADABLE``, ``SECRET_UNRESOLVED``.
    """
    keys = {}
    for provider, key in (await _found(ctx, variables, providers)).items():
        if isinstance(key, Unavailable):
            raise key
        keys[provider] = key
    return keys


async def _found(
    ctx: Ctx, variables: Mapping[str, str], providers: Collection[str] = PROVIDERS
) -> Mapping[str, ProviderKey | Unavailable]:
    """The key of each provider that has one, or why it cannot be read; what is read is masked from now on."""
    found = await asyncio.to_thread(_read, ctx, variables, providers)
    await secret_marks.learn(ctx, [key.value for key in found.values() if isinstance(key, ProviderKey)])
    return found


def _read(
    ctx: Ctx, variables: Mapping[str, str], providers: Collection[str]
) -> Mapping[str, ProviderKey | Unavailable]:
    """The key of each provider that has one, or why it cannot be read. Blocks."""
    ctx.local.gateway.watch([model_keys.path()])
    kept, found = model_keys.load(), {}
    files = (model_keys.file_of(key.reference, ctx.settings.project) for key in kept.values())
    ctx.local.gateway.watch([model_keys.path(), *filter(None, files)])
    for provider in (PROVIDERS[name] for name in PROVIDERS if name in providers):
        key: ProviderKey | Unavailable | None
        if provider.id in kept:
            try:
                base = base_in(provider, variables)
                key = model_keys.read(provider, kept[provider.id], ctx.settings.project, base)
            except Unavailable as error:
                key = error
        else:
            key = key_in(provider, os.environ, "the server's variable {}", base_in(provider, variables))
        if isinstance(key, ProviderKey) and not is_key(key.value):
            key = _no_key(key)
        if key is not None:
            found[provider.id] = key
    return found


def _no_key(key: ProviderKey) -> Unavailable:
    text = (
        f"What {key.source} has is no key of {PROVIDERS[key.provider].name}: that is one word of letters, digits and "
        f"signs. Correct it, or run `workbench keys add {key.provider}`."
    )
    return Unavailable("SECRET_UNRESOLVED", text, reference=key.source)


async def _listed(ctx: Ctx) -> ModelKeys:
    found = await _found(ctx, os.environ)
    return ModelKeys(keys=[_described(ctx, name, found.get(name)) for name in PROVIDERS])


def _described(ctx: Ctx, provider: str, key: ProviderKey | Unavailable | None) -> ModelKey:
    if key is None:
        detail = f"`workbench keys add {provider}` keeps one."
        return ModelKey(provider=provider, source=None, address="", state="none", detail=detail)
    if isinstance(key, Unavailable):
        source = key.details.get("reference")
        return ModelKey(provider=provider, source=source, address="", state="unreadable", detail=key.message)
    state, detail = ctx.local.gateway.trial(key)
    detail = " ".join(filter(None, (detail, model_keys.exposed(key.source, ctx.settings.project))))
    return ModelKey.model_validate(
        {"provider": provider, "source": key.source, "state": state, "detail": detail}
        | {"address": urlsplit(key.base).netloc.rpartition("@")[2]}
    )

"""The keys of model providers that answer for an agent, and what of the person's its box gets instead of them.

The key that is nearest to the agent counts: of the variables it was spawned with, of its definition, of those that the
person keeps for all agents, of the server's environment. A profile gets the providers that its program uses, or whose
variables it passes on.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping

from workbench.definition_files import Snapshot
from workbench.drivers import PROGRAMS, AgentSetup
from workbench.errors import WorkbenchError
from workbench.ops import Ctx
from workbench.providers.gateway import AgentKeys
from workbench.rules.models.upstream import PROVIDERS, ProviderKey, base_in, key_in, withheld_variables
from workbench.rules.profile import Profile
from workbench.services.definitions import changes, secrets
from workbench.services.models.keys import person_keys, try_keys
from workbench.services.processes import profiles
from workbench.services.spawning.request import SQL, SpawnRequest, environment_of

TRIAL_SECONDS = 4.0
"""How long a provider may take to say whether it accepts a key."""


def providers_of(profile: Profile) -> frozenset[str]:
    """The providers that a profile's program may ask by way of the gateway."""
    used = PROGRAMS[profile.program].providers if profile.program else ()
    passed = {name for name, one in PROVIDERS.items() if one.variables & set(profile.passes)}
    return frozenset(used) & PROVIDERS.keys() | passed


async def of_agent(ctx: Ctx, agent_uid: str) -> AgentKeys:
    """The keys that answer for a spawned agent, by provider; none if the setting `model_gateway` is off.

    Raises:
        Unavailable: ``KEYS_UNREADABLE``, ``SECRET_UNRESOLVED``, ``ENVIRONMENT_LOST``. WorkbenchError: see
            `profiles.load` and `changes.current`.
    """
    if not ctx.settings.model_gateway:
        return {}
    state = ctx.local.gateway
    state.forget_changed()
    async with state.reading.setdefault(agent_uid, asyncio.Lock()):
        if (known := state.keys.get(agent_uid)) is None:
            known = state.keys[agent_uid] = await _read(ctx, agent_uid)
    return known


async def _read(ctx: Ctx, agent_uid: str) -> AgentKeys:
    spawn = await ctx.read(lambda tx: tx.one(SQL.get, agent=agent_uid))
    if spawn is None:
        return await _of_elsewhere(ctx, agent_uid)
    request = SpawnRequest.of(spawn)
    profile = await asyncio.to_thread(profiles.load, ctx.settings, request.profile)
    providers = providers_of(profile)
    if not providers:
        return {}
    environment = await environment_of(ctx, agent_uid, request)
    snapshot = (
        await changes.current(ctx, spawn["definition_id"], request.definition) if spawn["definition_id"] else None
    )
    own = {name: key for name in providers if (key := key_in(PROVIDERS[name], environment, "its own variable {}"))}
    # The person's keys go to addresses that she has chosen: an agent may spawn agents, too.
    chosen = {**os.environ, **(environment if spawn["spawned_by"] is None else {})}
    defined = await _of_definition(ctx, snapshot, providers - own.keys(), chosen) if snapshot else {}
    left = providers - own.keys() - defined.keys()
    others = await person_keys(ctx, chosen, left) if left else {}
    return {**others, **defined, **own}


async def _of_elsewhere(ctx: Ctx, agent_uid: str) -> AgentKeys:
    """The person's keys for a worker of a machine without a clone; none for other agents that were not spawned."""
    worker = await ctx.read(lambda tx: tx.one(SQL.elsewhere, agent=agent_uid))
    if worker is None:
        return {}
    providers = providers_of(await asyncio.to_thread(profiles.load, ctx.settings, worker["profile"]))
    return await person_keys(ctx, os.environ, providers) if providers else {}


async def _of_definition(
    ctx: Ctx, snapshot: Snapshot, providers: Collection[str], chosen: Mapping[str, str]
) -> AgentKeys:
    """The keys that a definition has for providers. That it may use them was decided when its agent was spawned."""
    configured = [name for name in providers if name in snapshot.definition.providers]
    if not configured:
        return {}
    resolved = await secrets.resolved(ctx, snapshot.definition, providers=configured, servers=())
    keys = {
        name: key_in(
            PROVIDERS[name],
            resolved.providers[name],
            "its definition's {}",
            base_in(PROVIDERS[name], resolved.providers[name]) or base_in(PROVIDERS[name], chosen),
        )
        for name in configured
    }
    return {name: key for name, key in keys.items() if key}


def without_keys(values: Mapping[str, str], providers: Collection[str]) -> dict[str, str]:
    """Variables without those of the providers that the gateway answers for."""
    withheld = set(withheld_variables(providers))
    return {name: value for name, value in values.items() if name not in withheld}


def setup_without_keys(setup: AgentSetup | None, keys: AgentKeys) -> AgentSetup | None:
    """A definition's setup without the keys that stay with the person."""
    if setup is None or not keys:
        return setup
    values = {key.value for key in keys.values()}
    return setup.model_copy(
        update={
            "provider_config": without_keys(setup.provider_config, keys),
            "secrets": tuple(secret for secret in setup.secrets if secret not in values),
        }
    )


async def described(ctx: Ctx, agent_uid: str) -> list[str]:
    """Sentences about the providers that answer for an agent, or why its keys cannot be read. A key that was not used
    lately is tried: what is wrong with it is told before the agent needs it."""
    try:
        keys = await of_agent(ctx, agent_uid)
    except WorkbenchError as error:
        return [error.message]
    await try_keys(ctx, [key for key in keys.values() if not ctx.local.gateway.is_fresh(key)], TRIAL_SECONDS)
    return [_sentence(ctx, key) for key in keys.values()]


def _sentence(ctx: Ctx, key: ProviderKey) -> str:
    state, detail = ctx.local.gateway.trial(key)
    if state == "accepted":
        return f"{PROVIDERS[key.provider].name} answers, with {key.source}."
    told = f"{detail} Its key is that of {key.source}."
    return f"{told} `workbench keys add {key.provider}` keeps another." if state == "refused" else told

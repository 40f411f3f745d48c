"""The definition that an agent is spawned with: found, trusted, and prepared for the program of its profile.

An agent has the definition with the id in `agents.definition_id`. Each start of its process, also a restart, takes the
definition as it is then, and records its content hash: after a change of a definition, a restart puts it into effect.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from typing import Annotated, Any

from pydantic import Field

from workbench.definition_files import Snapshot
from workbench.drivers import AgentSetup
from workbench.errors import BadInput, NotFound, Refused
from workbench.model import Capability, SelfTools
from workbench.ops import Ctx
from workbench.rules.definitions import composition, layout
from workbench.rules.definitions.secrets.written_out import with_masked_configuration
from workbench.services.agents.register import OwnDefinition
from workbench.services.definitions import changes, secrets, trust
from workbench.services.processes import profiles
from workbench.services.spawning.request import SpawnRequest
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

DefinitionTarget = Annotated[
    str | None,
    Field(min_length=1, max_length=1_000, description="Its definition: path, id or name; see agent_list. Null: none."),
]
Include = Annotated[
    list[Annotated[str, Field(max_length=100)]],
    Field(max_length=1_000, description="The definition's manual rules and references to use."),
]
OwnTools = Annotated[
    SelfTools | None,
    Field(description="Null: write, if you may write definitions."),
]


async def find(ctx: Ctx, target: str | None, include: Collection[str]) -> Snapshot | None:
    """The definition to spawn an agent with; None if `target` is None.

    Raises:
        WorkbenchError: see `changes.read`. BadInput: ``DEFINITION_REQUIRED``. NotFound: ``NOT_FOUND``: a name in
            `include` is of no rule or reference.
    """
    if target is None:
        if include:
            raise BadInput("DEFINITION_REQUIRED", "include names parts of a definition. Give the definition, too.")
        return None
    snapshot = await changes.read(ctx, target)
    names = {entry.name for entry in (*snapshot.definition.rules, *snapshot.definition.references)}
    if unknown := sorted(set(include) - names):
        raise NotFound(
            "NOT_FOUND", f"The definition has no rule or reference {unknown[0]!r}. It has: {_listed(names)}."
        )
    return snapshot


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def own(ctx: Ctx, snapshot: Snapshot, self_tools: SelfTools | None) -> OwnDefinition:
    """The definition of a new agent, with what the agent may do with it: no more than its parent may.

    Raises:
        Refused: ``FORBIDDEN``.
    """
    may_write = Capability.DEFINITIONS in ctx.caller.capabilities
    if self_tools is SelfTools.WRITE and not may_write:
        raise Refused("FORBIDDEN", "You may not write definitions, so your agents may not. Give self_tools=read.")
    permission = self_tools or (SelfTools.WRITE if may_write else SelfTools.READ)
    metadata = snapshot.definition.metadata
    return OwnDefinition(id=metadata.id, name=metadata.name, hash=snapshot.hash, self_tools=permission)


def persona_of(persona_id: str | None, snapshot: Snapshot | None) -> str:
    """The persona of an agent: the one that was chosen, else that of its definition.

    Raises:
        BadInput: ``PERSONA_REQUIRED``.
    """
    persona = persona_id or (snapshot and snapshot.definition.metadata.persona)
    if not persona:
        whose = "The definition names no persona. " if snapshot else ""
        raise BadInput("PERSONA_REQUIRED", f"{whose}Give persona_id: what kind of work the agent takes.")
    return persona


async def snapshot_of(ctx: Ctx, request: SpawnRequest, spawn: Row) -> Snapshot | None:
    """An agent's definition as it is now; None if it has none.

    Args:
        spawn: its row.

    Raises:
        WorkbenchError: see `changes.current`.
    """
    definition_id = spawn["definition_id"]
    return None if definition_id is None else await changes.current(ctx, definition_id, request.definition)


async def of_agent(ctx: Ctx, request: SpawnRequest, spawn: Row, snapshot: Snapshot | None) -> AgentSetup | None:
    """The parts of an agent's present definition that its worker gets; None if it has none.

    Args:
        spawn: its row.

    Raises:
        WorkbenchError: see `setup`.
    """
    if snapshot is None:
        return None
    return await setup(ctx, request, snapshot, SelfTools(spawn["self_tools"]))


async def setup(ctx: Ctx, request: SpawnRequest, snapshot: Snapshot, self_tools: SelfTools) -> AgentSetup:
    """The parts of a definition that a worker gets.

    Raises:
        WorkbenchError: see `profiles.load` and `profiles.fitted`. Refused: ``DEFINITION_NOT_TRUSTED``.
        Unavailable: ``SECRET_UNRESOLVED``.
    """
    definition, profile = snapshot.definition, await asyncio.to_thread(profiles.load, ctx.settings, request.profile)
    fit, offers = profiles.fitted(profile, definition), profile.token and self_tools is not SelfTools.OFF
    if fit.needs_trust:
        await trust.require(ctx, snapshot)
    provider = fit.provider or ""
    resolved = await secrets.resolved(ctx, definition, providers=(provider,), servers=tuple(fit.servers))
    most = {"max_chat_turns", "max_output_tokens"}
    servers = {
        name: server.model_copy(update={"server": resolved.mcp_servers[name]}) for name, server in fit.servers.items()
    }
    return AgentSetup(
        id=definition.metadata.id,
        name=definition.metadata.name,
        hash=snapshot.hash,
        system_prompt=composition.system_prompt(definition, request.include, offers=offers),
        include=tuple(sorted(request.include)),
        files={
            path: text
            for path, text in layout.change({}, with_masked_configuration(definition)).items()
            if text is not None
        },
        provider=fit.provider,
        provider_config=dict(resolved.providers.get(provider, {})),
        model=fit.model,
        servers=servers,
        limits=definition.settings.limits,
        secrets=tuple(sorted(resolved.values)),
        **definition.settings.model_dump(by_alias=False, include=most),
    )


def version(setup: AgentSetup | None) -> dict[str, Any]:
    """The hashes of the definition that an agent is started with, and of the prompt that is made of it."""
    if setup is None:
        return dict.fromkeys(("definition_hash", "prompt_hash", "include"))
    prompt = composition.text_hash(setup.system_prompt)
    return {"definition_hash": setup.hash, "prompt_hash": prompt, "include": json.dumps(setup.include)}


def record(tx: Tx, agent_uid: str, setup: AgentSetup | None) -> None:
    """Record the version of its definition that an agent is started with."""
    tx.run(SQL.record, version(setup), agent=agent_uid)

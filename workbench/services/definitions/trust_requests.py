"""The operations about what a definition is trusted with; the answer is given in the inbox."""

from __future__ import annotations

from typing import Any

from workbench.definition_files import Snapshot
from workbench.model import Level
from workbench.ops import Ctx, op
from workbench.rules.definitions.trust import TrustKind
from workbench.services.definitions import changes, trust
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, DefinitionChanged, definition_op
from workbench.services.definitions.trust import TrustState


class TrustNeed(DefinitionAnswer):
    """A program, server, provider or permission that a definition needs trust for. `details` has what is trusted."""

    kind: TrustKind
    name: str
    summary: str
    details: dict[str, Any]
    trusted: bool


class TrustRequest(DefinitionAnswer):
    """What a definition needs and whether it is trusted. `approvalId` is the pending question about the rest."""

    agent_id: str
    agent_path: str
    trusted: bool
    needs: list[TrustNeed]
    approval_id: int | None
    refusal: str | None


@definition_op(reads=True, command="define trust")
async def agent_get_trust(ctx: Ctx, agentTarget: AgentTarget) -> TrustRequest:
    """Get what an agent definition needs the operator's trust for: programs, servers, providers, permissions."""
    snapshot = await changes.read(ctx, agentTarget)
    return _trust(ctx, snapshot, await trust.state(ctx, snapshot))


@definition_op(command="define trust --ask")
async def agent_request_trust(ctx: Ctx, agentTarget: AgentTarget) -> TrustRequest:
    """Ask the operator to trust what an agent definition needs; get_approval waits for the answer.

    A definition is not used before all that it needs is trusted. What the operator wrote is trusted at once.
    """
    snapshot = await changes.read(ctx, agentTarget)
    return _trust(ctx, snapshot, await trust.ask(ctx, snapshot))


@op(allow=Level.OPERATOR, destructive=True, invalid="VALIDATION_ERROR", command="define trust --revoke")
async def agent_revoke_trust(ctx: Ctx, agentTarget: AgentTarget) -> DefinitionChanged:
    """Trust nothing of an agent definition any more. Agents that run with it go on."""
    metadata = (await changes.read(ctx, agentTarget)).definition.metadata
    await ctx.write(lambda tx: trust.forget(tx, metadata.id))
    return DefinitionChanged(message=f"{metadata.name}: nothing of it is trusted.")


def _trust(ctx: Ctx, snapshot: Snapshot, state: TrustState) -> TrustRequest:
    missing = {need.fingerprint for need in state.missing}
    needs = [
        TrustNeed(
            kind=need.kind,
            name=need.name,
            summary=need.summary,
            details=dict(need.details),
            trusted=need.fingerprint not in missing,
        )
        for need in state.needs
    ]
    return TrustRequest(
        agent_id=snapshot.definition.metadata.id,
        agent_path=ctx.definitions.display_path(snapshot.path),
        trusted=not missing,
        needs=needs,
        approval_id=state.approval_id,
        refusal=next(iter(state.refusals.values()), None),
    )

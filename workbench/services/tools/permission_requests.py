"""Questions to the operator before a call: opened with the call, decided in the inbox, withdrawn with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from workbench.errors import BadInput
from workbench.ops import Ctx
from workbench.present.inert import inert
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo
from workbench.services.tools import lost_calls, permissions
from workbench.services.tools.permissions import Allowed, ToolStanding
from workbench.services.tools.tool import Permission, ToolInfo, ToolInvocation, quoted
from workbench.store.base import Tx

KIND = "tool_call"
PEER_KIND = "peer_call"
"""Of questions about calls that another node has sent; `services.personalities.calls.permissions` decides them."""
ONCE = "once"
WAIT_SECONDS = 3_600.0


def ask(tx: Tx, tool: ToolInfo, call: ToolInvocation, arguments: str, standing: ToolStanding) -> int:
    """Ask whether a call may run; the id of the approval.

    Args:
        arguments: JSON text, with secrets masked.
    """
    payload = {
        "title": inert(tool.title),
        "description": inert(tool.description),
        "source": tool.source,
        "server": tool.server,
        "origin_of_tool": tool.origin,
        "call_id": call.id,
        "caller": call.scope.caller.name,
        "conversation_id": call.scope.conversation_id,
        "arguments": json.loads(arguments),
        "changes": [asdict(change) for change in standing.changes],
        **asdict(Allowed.of(tool)),
    }
    if (origin := call.scope.origin) is not None:
        sent_by = {
            "node": origin.node,
            "call_id": origin.call_id,
            "caller": inert(origin.caller),
            "says": quoted(origin.caller),
        }
        return approvals.ask(tx, PEER_KIND, f"tool_call:{call.id}", {**payload, "origin": sent_by})
    return approvals.ask(tx, KIND, f"tool_call:{call.id}", payload)


async def decision(ctx: Ctx, approval_id: int) -> ApprovalInfo:
    """Wait for a decision, however long it takes."""
    while True:
        found = await ctx.feed.until(
            lambda tx: approvals.find(tx, approval_id),
            lambda approval: approval is None or approval.status != "pending",
            "approval.*",
            subject=f"approval:{approval_id}",
            seconds=WAIT_SECONDS,
        )
        assert found is not None, "approvals are not deleted"
        if found.status != "pending":
            return found


@approvals.decision_handler(KIND)
async def decide_tool_call(ctx: Ctx, approval: ApprovalInfo, yes: bool, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Let the call that waits go on, or refuse it; with `remember: always` also all later calls of the tool."""
    approvals.check_choices(choices, {"remember"} if yes else {"reason"})
    remember = choices.get("remember", ONCE)
    if remember not in (ONCE, Permission.ALWAYS):
        raise BadInput("INVALID_ARGUMENTS", "remember is once or always.", problems=[])
    await lost_calls.interrupt(ctx)  # a call whose program has ended is not run any more
    reason, person = str(choices.get("reason", "")), approvals.person_of(ctx)
    return await ctx.write(lambda tx: _decide(tx, approval, yes, reason, remember, person))


def _decide(
    tx: Tx, approval: ApprovalInfo, yes: bool, reason: str, remember: str, person: str | None
) -> dict[str, Any]:
    payload = approval.payload
    outcome = {"tool": payload["tool"], "state": "allowed" if yes else "refused", "remember": remember}
    made = approvals.decide(tx, approval, "approved" if yes else "rejected", reason, outcome, person)
    if remember == Permission.ALWAYS:
        allow(tx, Allowed(**{field.name: payload[field.name] for field in fields(Allowed)}))
    return made


def allow(tx: Tx, what: Allowed) -> None:
    """Allow all calls of a tool, also those that wait for an answer about the same one."""
    permissions.allow(tx, what)
    outcome = {"tool": what.tool, "state": "allowed", "remember": Permission.ALWAYS}
    same = {"tool": what.tool, "offered_by": what.offered_by, "fingerprint": what.fingerprint}
    for question in approvals.pending(tx, KIND):
        if same.items() <= question.payload.items():
            approvals.decide(tx, question, "approved", "", outcome)


def refuse(tx: Tx, tool: str) -> None:
    """Refuse the calls that wait of tools with a name, which may never be called."""
    outcome = {"tool": tool, "state": "refused", "remember": Permission.NEVER}
    for question in approvals.pending(tx, KIND):
        if question.payload["tool"] == tool:
            approvals.decide(tx, question, "rejected", "This tool may never be called.", outcome)

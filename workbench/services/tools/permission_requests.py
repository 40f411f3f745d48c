"""Questions to the operator before a call: opened with the call, decided in the inbox, withdrawn with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from workbench.errors import BadInput
from workbench.ops import Ctx
from workbench.present.inert import inert
from workbench.rules.tools import argument_patterns
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo
from workbench.services.tools import call_log, permissions
from workbench.services.tools.permissions import Allowed, CallScope, ToolStanding
from workbench.services.tools.tool import Permission, ToolInfo, ToolInvocation, quoted
from workbench.store.base import Tx

KIND = "tool_call"
PEER_KIND = "peer_call"
"""Of questions about calls that another node has sent; `services.personalities.calls.permissions` decides them."""
ONCE, CONVERSATION, TASK = "once", "conversation", "task"
MOST_PATTERNS, LONGEST_PATTERN = 50, 1_000
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
        "task_id": permissions.task_of(tx, call.scope.caller.agent),
        "destructive": tool.hints.destructive,
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
        request = await ctx.feed.until(
            lambda tx: approvals.find(tx, approval_id),
            lambda approval: approval is None or approval.status != "pending",
            "approval.*",
            subject=f"approval:{approval_id}",
            seconds=WAIT_SECONDS,
        )
        assert request is not None, "approvals are not deleted"
        if request.status != "pending":
            return request


@approvals.decision_handler(KIND)
async def decide_tool_call(ctx: Ctx, approval: ApprovalInfo, yes: bool, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Let the call that waits go on, or refuse it; with `remember` also later calls of the tool: all, those of the
    conversation or the task, or those with such `arguments`."""
    approvals.check_choices(choices, {"remember", "arguments"} if yes else {"reason"})
    remember = choices.get("remember", Permission.ALWAYS if "arguments" in choices else ONCE)
    scope = _scope(approval, remember, choices.get("arguments"))
    await call_log.interrupt_lost(ctx)  # a call whose program has ended is not run any more
    reason, person = str(choices.get("reason", "")), approvals.person_of(ctx)
    return await ctx.write(lambda tx: _decide(tx, approval, yes, reason, str(remember), scope, person))


def _scope(approval: ApprovalInfo, remember: Any, patterns: Any) -> CallScope | None:
    """The later calls that a decision is about; None: there are none.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    places = {ONCE: "", Permission.ALWAYS: "", CONVERSATION: "conversation_id", TASK: "task_id"}
    if remember not in places:
        raise BadInput("INVALID_ARGUMENTS", "remember is once, conversation, task or always.", problems=[])
    place = places[remember]
    if place and approval.payload.get(place) is None:
        text = f"The call belongs to no {remember}. Allow it once or always."
        raise BadInput("INVALID_ARGUMENTS", text, problems=[])
    arguments = None if patterns is None else _patterns(patterns, approval.payload["arguments"])
    if remember == ONCE:
        if arguments is not None:
            raise BadInput(
                "INVALID_ARGUMENTS", "arguments is about later calls: remember is not once then.", problems=[]
            )
        return None
    return CallScope(**({place: approval.payload[place]} if place else {}), arguments=arguments)


def _patterns(patterns: Any, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Patterns of arguments, which those of the call that waits match.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    if (
        not isinstance(patterns, Mapping)
        or len(patterns) > MOST_PATTERNS
        or not all(isinstance(pattern, str) and len(pattern) <= LONGEST_PATTERN for pattern in patterns.values())
    ):
        text = f"arguments has at most {MOST_PATTERNS} texts of at most {LONGEST_PATTERN} characters, by argument."
        raise BadInput("INVALID_ARGUMENTS", text, problems=[])
    if missing := argument_patterns.unnamed(patterns, arguments):
        text = f"No pattern matches {', '.join(missing)} of this call. Each argument needs one; * is any text."
        raise BadInput("INVALID_ARGUMENTS", text, problems=missing)
    return dict(patterns)


def _decide(
    tx: Tx,
    approval: ApprovalInfo,
    yes: bool,
    reason: str,
    remember: str,
    scope: CallScope | None,
    person: str | None,
) -> dict[str, Any]:
    payload = approval.payload
    outcome = {"tool": payload["tool"], "state": "allowed" if yes else "refused", "remember": remember}
    if scope is not None and scope.arguments is not None:
        outcome["arguments"] = scope.arguments
    answer = approvals.decide(tx, approval, "approved" if yes else "rejected", reason, outcome, person)
    if scope is not None:
        allow(tx, Allowed(**{field.name: payload[field.name] for field in fields(Allowed)}), scope, outcome)
    return answer


def allow(tx: Tx, what: Allowed, scope: CallScope = CallScope(), outcome: Mapping[str, Any] | None = None) -> None:
    """Allow calls of a tool within a scope, also those that wait for an answer about the same one."""
    if scope.is_everything:
        permissions.allow(tx, what)
    else:
        permissions.allow_within(tx, what, scope)
    outcome = outcome or {"tool": what.tool, "state": "allowed", "remember": Permission.ALWAYS}
    same = {"tool": what.tool, "offered_by": what.offered_by, "fingerprint": what.fingerprint}
    for question in approvals.pending(tx, KIND):
        asked = question.payload
        is_within = scope.has(asked["conversation_id"], asked.get("task_id"), asked["arguments"])
        if same.items() <= asked.items() and is_within:
            approvals.decide(tx, question, "approved", "", outcome)


def refuse(tx: Tx, tool: str) -> None:
    """Refuse the calls that wait of tools with a name, which may never be called."""
    outcome = {"tool": tool, "state": "refused", "remember": Permission.NEVER}
    for question in approvals.pending(tx, KIND):
        if question.payload["tool"] == tool:
            approvals.decide(tx, question, "rejected", "This tool may never be called.", outcome)

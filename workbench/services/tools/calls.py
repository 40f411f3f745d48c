"""Calls of tools: found, permitted, recorded, run. Every shell and every conversation calls tools by `call`.

The start of a call is committed before its tool runs, so that the next process interrupts the call if this one ends in
the middle. It becomes durable with the call's end, for which the caller waits. A write goes on when the caller that
waits for it is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import BadInput, Conflict, Refused, Unavailable, WorkbenchError, named
from workbench.model import Capability, Json, Level, Wire, uuid7
from workbench.ops import Ctx, RestRoute, first_problems, op
from workbench.ops.running_calls import RunningCall
from workbench.present.inert import inert
from workbench.rules.tools import content
from workbench.rules.tools.arguments import is_loaded, problems
from workbench.rules.tools.masking import marked
from workbench.rules.tools.results import as_json, is_small, shortened
from workbench.rules.tools.surroundings import Surroundings
from workbench.services.access.authentication import CallerCache
from workbench.services.tools import call_log, catalogue, permission_requests, permissions, refused_calls
from workbench.services.tools.call_log import CallEnd
from workbench.services.tools.catalogue import ToolName
from workbench.services.tools.permissions import ToolStanding
from workbench.services.tools.progress import CallProgress
from workbench.services.tools.tool import (
    Permission,
    ToolInfo,
    ToolInvocation,
    ToolKind,
    ToolOutcome,
    ToolPlace,
    ToolScope,
)
from workbench.store.base import Tx

REASON_LIMIT = 2_000

log = logging.getLogger(__name__)


class ToolResult(Wire):
    """What a tool returned. `is_error`: the tool itself says that it failed."""

    call_id: str
    tool_name: str
    source: ToolPlace
    server: str | None
    is_error: bool
    result: Json


@dataclass(frozen=True, slots=True)
class Finished:
    """A call that has ended, with what the tool returned."""

    call_id: str
    tool: ToolInfo
    outcome: ToolOutcome


@op(
    allow=Level.WORKER,
    requires=Capability.TOOLS,
    attended=True,
    command="tools call",
    rest=RestRoute("POST", "/tools/{name}/call", body="arguments"),
)
async def call_tool(
    ctx: Ctx,
    name: ToolName,
    arguments: Annotated[dict[str, Any], Field(description="As its schema says; see get_tool.")] = {},
) -> ToolResult:
    """Call a tool of list_tools and return its result. It may have to wait for the operator's permission."""
    done = await call(ctx, ToolScope(ctx.caller), name, arguments, ctx.surroundings)
    tool = done.tool
    return ToolResult(
        call_id=done.call_id,
        tool_name=tool.name,
        source=tool.source,
        server=tool.server,
        is_error=done.outcome.is_error,
        result=done.outcome.value,
    )


async def call(
    ctx: Ctx,
    scope: ToolScope,
    name: str,
    arguments: Mapping[str, Any],
    surroundings: Surroundings = Surroundings(),
) -> Finished:
    """Call a tool. Cancelling this cancels the tool, and withdraws a question that is open. A call that is refused
    before it begins is recorded, too.

    Raises:
        NotFound: ``UNKNOWN_TOOL``. BadInput: ``INVALID_ARGUMENTS``.
        Unavailable: ``TOOL_UNAVAILABLE``, ``TOOL_FAILED``, ``TOOL_RESULT_TOO_LARGE``, ``TOOL_INTERRUPTED``.
        Refused: ``TOOL_FORBIDDEN``, ``TOOL_DENIED``. Conflict: ``TOOL_CANCELLED``, ``TOOL_CHANGED``.
        WorkbenchError: what the tool raises.
    """
    ctx = ctx.of(scope.caller)
    async with refused_calls.recorded(ctx, scope, name, arguments):
        tool, standing = await _admit(ctx, scope, name, arguments)
    ctx = ctx._replace(secrets=ctx.secrets.also(marked(dict(arguments), tool.parameters)))
    call_id = str(uuid7(ctx.store.now()))
    progress = CallProgress(ctx, call_id, surroundings.progress)
    invocation = ToolInvocation(call_id, scope, arguments, replace(surroundings, progress=progress))
    with ctx.local.running_calls.running(invocation.id) as running:
        try:
            tool = await _begin(ctx, tool, invocation, standing)
            _follow(invocation, None)
            outcome = await tool.run(ctx, invocation)
            result, shown = await _result_texts(ctx, tool, invocation, outcome)
        except BaseException as error:
            raise await _record_failure(ctx, tool, invocation, error, running) from None
        finally:
            progress.close()
        await _end(ctx, invocation, _end_of(tool, outcome, result, shown))
    return Finished(invocation.id, tool, outcome)


async def _admit(ctx: Ctx, scope: ToolScope, name: str, arguments: Mapping[str, Any]) -> tuple[ToolInfo, ToolStanding]:
    """The tool of a call that may begin, and whether the operator is to be asked first.

    Raises:
        NotFound: ``UNKNOWN_TOOL``. Unavailable: ``TOOL_UNAVAILABLE``. BadInput: ``INVALID_ARGUMENTS``.
        Refused: ``TOOL_FORBIDDEN``, and what `PeerOrigin.permission` raises.
    """
    tool = await catalogue.find(ctx, scope, name)
    if not tool.can_be_called:
        raise _unavailable(tool)
    await _check(tool, arguments)
    standing = await permissions.of(ctx, scope, tool, arguments)
    _require_permitted(tool, standing)
    return tool, standing


def _end_of(tool: ToolInfo, outcome: ToolOutcome, result: str, shown: str | None) -> CallEnd:
    """How a call ended whose tool has returned something."""
    state, code = ("failed", "TOOL_ERROR") if outcome.is_error else ("completed", None)
    return CallEnd(state, result, code, outcome.version or tool.ran_as, outcome.usage, shown=shown)


async def _check(tool: ToolInfo, arguments: Mapping[str, Any]) -> None:
    """Check the arguments of a tool that is no operation: an operation checks its own."""
    if tool.kind is ToolKind.OPERATION:
        return
    is_quick = is_loaded() and is_small(arguments)
    found = problems(tool.schema, arguments) if is_quick else await asyncio.to_thread(problems, tool.schema, arguments)
    if found:
        raise BadInput("INVALID_ARGUMENTS", f"{tool.name}: {first_problems(found)}.", problems=found)


async def _begin(ctx: Ctx, tool: ToolInfo, invocation: ToolInvocation, standing: ToolStanding) -> ToolInfo:
    """Record a call that starts, after the operator has allowed it where that is needed; the tool as it is then.

    Raises:
        Refused: ``TOOL_DENIED``. Others: see `_present`.
    """
    arguments = ctx.secrets.masked(dict(invocation.arguments), tool.parameters)
    limit, runner = ctx.settings.tool_shown_chars, ctx.local.running_calls.runner
    if standing.permission is Permission.ASK:
        await _ask(ctx, tool, invocation, as_json(arguments), standing)
        present = await _present(ctx, tool, invocation)
        await ctx.write(lambda tx: call_log.started(tx, present, invocation.id, limit), durable=False)
        return present
    await ctx.write(lambda tx: call_log.add(tx, tool, invocation, as_json(arguments), runner, limit), durable=False)
    return tool


async def _ask(ctx: Ctx, tool: ToolInfo, invocation: ToolInvocation, arguments: str, standing: ToolStanding) -> None:
    """Wait until the operator has allowed a call.

    Raises:
        Refused: ``TOOL_DENIED``.
    """

    def ask(tx: Tx) -> int:
        approval_id = permission_requests.ask(tx, tool, invocation, arguments, standing)
        runner, limit = ctx.local.running_calls.runner, ctx.settings.tool_shown_chars
        call_log.add(tx, tool, invocation, arguments, runner, limit, approval_id)
        return approval_id

    approval_id = await ctx.write(ask)
    _follow(invocation, approval_id)
    approval = await permission_requests.decision(ctx, approval_id)
    if approval.status != "approved":
        why = approval.reason or "no reason was given"
        raise Refused("TOOL_DENIED", f"The operator refused this call of {tool.name}: {why}.", approval_id=approval_id)


def _follow(invocation: ToolInvocation, approval_id: int | None) -> None:
    """Let the caller know that a call waits for an approval, or runs."""
    if invocation.surroundings.follow is not None:
        invocation.surroundings.follow(invocation.id, approval_id)


async def _present(ctx: Ctx, asked: ToolInfo, invocation: ToolInvocation) -> ToolInfo:
    """The tool of a call that the operator has allowed, if the caller may still use it and it is still the same.

    Raises:
        Unauthenticated: ``INVALID_TOKEN``. NotFound: ``UNKNOWN_TOOL``. Conflict: ``TOOL_CHANGED``.
        Refused: ``TOOL_FORBIDDEN``, and what `PeerOrigin.permission` raises.
    """
    caller = invocation.scope.caller
    if caller.agent is not None:
        caller = await CallerCache(ctx.store).renewed(caller)
    tool = await catalogue.find(ctx.of(caller), replace(invocation.scope, caller=caller), asked.name)
    if (tool.fingerprint, tool.offered_by.key) != (asked.fingerprint, asked.offered_by.key):
        raise Conflict("TOOL_CHANGED", f"{asked.name} changed while the operator was asked. Call it again.")
    if not tool.can_be_called:
        raise _unavailable(tool)
    if invocation.scope.origin is not None:
        _require_permitted(tool, await permissions.of(ctx, invocation.scope, tool, invocation.arguments))
    return tool


def _require_permitted(tool: ToolInfo, standing: ToolStanding) -> None:
    if standing.permission is Permission.NEVER:
        raise Refused("TOOL_FORBIDDEN", f"The operator does not allow calls of {tool.name}.")


def _unavailable(tool: ToolInfo) -> Unavailable:
    return Unavailable("TOOL_UNAVAILABLE", f"{tool.name} cannot be called now: {tool.problem}.")


async def _record_failure(
    ctx: Ctx, tool: ToolInfo, invocation: ToolInvocation, error: BaseException, running: RunningCall
) -> BaseException:
    """Record that a call failed or was cancelled; the error for its caller."""
    if isinstance(error, asyncio.CancelledError):
        end = ("interrupted", "TOOL_INTERRUPTED") if running.is_interrupted else ("cancelled", "TOOL_CANCELLED")
        await _end(ctx, invocation, CallEnd(end[0], code=end[1]))
        return error
    if isinstance(error, WorkbenchError):
        text = ctx.secrets.masked(f"{error.code}: {error.message}")
        await _end(ctx, invocation, CallEnd("failed", as_json(text), error.code))
        return error
    if not isinstance(error, Exception):
        return error
    reason = shortened(inert(ctx.secrets.masked(named(error))), REASON_LIMIT)
    log.info("the tool %s failed: %s", tool.name, reason)
    await _end(ctx, invocation, CallEnd("failed", as_json(reason), "TOOL_FAILED"))
    return Unavailable("TOOL_FAILED", f"{tool.name} failed: {reason}")


async def _result_texts(
    ctx: Ctx, tool: ToolInfo, invocation: ToolInvocation, outcome: ToolOutcome
) -> tuple[str, str | None]:
    """The result as JSON text with secrets masked, as the log keeps it, and with pictures named, if it has any.

    Raises:
        Unavailable: ``TOOL_RESULT_TOO_LARGE``.
    """
    schema = tool.result if tool.result is not None else True
    masking = partial(_mask, ctx, outcome, schema)
    is_quick = is_small(outcome.structured) and is_small(outcome.content)
    result, shown = masking() if is_quick else await asyncio.to_thread(masking)
    limit = "max_tool_result_bytes" if invocation.scope.origin is None else "max_koi_result_bytes"
    if len(result) > getattr(ctx.settings, limit):
        raise Unavailable(
            "TOOL_RESULT_TOO_LARGE",
            f"{tool.name} returned {len(result):,} characters, more than {limit} allows. Ask for less.",
        )
    return result, shown


def _mask(ctx: Ctx, outcome: ToolOutcome, schema: Mapping[str, Any] | bool) -> tuple[str, str | None]:
    value = outcome.shown_value(ctx.secrets, schema)
    return as_json(value), as_json(content.as_text(value)) if content.has_pictures(outcome.content) else None


async def _end(ctx: Ctx, invocation: ToolInvocation, how: CallEnd) -> None:
    """Record how a call ended, if it was recorded, and withdraw the question about it if that is open."""
    limit, progress = ctx.settings.tool_shown_chars, invocation.surroundings.progress
    last = progress.last if isinstance(progress, CallProgress) else None

    def end(tx: Tx) -> None:
        if call_log.ended(tx, invocation.id, replace(how, progress=last), limit):
            call_log.withdraw_questions(tx, invocation.id, "The caller does not wait any more.")

    await ctx.write(end)

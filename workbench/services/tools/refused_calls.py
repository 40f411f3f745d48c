"""Calls that are refused before they wait or run: each leaves a record, unless a caller is refused all the time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any

from workbench.errors import WorkbenchError
from workbench.model import Level, uuid7
from workbench.ops import Ctx, authorise
from workbench.present.inert import inert_line
from workbench.rules.tools.masking import marked
from workbench.rules.tools.results import as_json, shortened
from workbench.rules.tools.surroundings import Surroundings
from workbench.rules.wire import json_safety
from workbench.services.tools import call_log, catalogue
from workbench.services.tools.call_log import CallEnd
from workbench.services.tools.tool import (
    Offerer,
    OffererKind,
    ToolInfo,
    ToolInvocation,
    ToolKind,
    ToolOutcome,
    ToolPlace,
    ToolScope,
)

CALL_TOOL = "call_tool"
LONGEST_NAME = 200
LONGEST_ARGUMENTS = 20_000
"""Characters of JSON. Of longer arguments the beginning is kept, as a text: nothing has checked them."""
NETWORK = "network"
"""The caller under whose name the refusals of all other nodes are counted; those of each node are counted, too."""


async def check(ctx: Ctx, operation: str, arguments: Mapping[str, Any]) -> None:
    """Refuse an operation that calls a tool as `require_may_call` does; any other is not for this to refuse."""
    name = arguments.get("name") if operation == CALL_TOOL else None
    if isinstance(name, str):
        await require_may_call(ctx, name, arguments.get("arguments"))


async def require_may_call(ctx: Ctx, name: str, arguments: Any) -> None:
    """Refuse a call of a tool by a caller who may call none. That of an agent is recorded; nobody else is known.

    Raises:
        WorkbenchError: see `authorise`.
    """
    is_known = ctx.caller.agent is not None and ctx.caller.level > Level.ANONYMOUS
    mapping = arguments if isinstance(arguments, Mapping) else {}
    async with recorded(ctx, ToolScope(ctx.caller), name, mapping) if is_known else nullcontext():
        authorise(ctx.catalogue[CALL_TOOL], ctx.caller)


@asynccontextmanager
async def recorded(ctx: Ctx, scope: ToolScope, name: str, arguments: Mapping[str, Any]) -> AsyncIterator[None]:
    """Have a call recorded if the block refuses it; see `record`."""
    try:
        yield
    except WorkbenchError as error:
        await record(ctx, scope, name, arguments, error)
        raise


async def record(
    ctx: Ctx, scope: ToolScope, name: str, arguments: Mapping[str, Any] | str, error: WorkbenchError
) -> None:
    """Record a refused call as one that failed and never started, with its arguments as far as they may be shown.

    A caller that is refused more often than `RunningCalls` lets it leave records leaves none; the next record says how
    many there are.

    Args:
        arguments: a text if they are no JSON object.
    """
    now = ctx.store.now()
    left_out = ctx.local.running_calls.note_refusal(NETWORK if scope.origin is not None else scope.caller.name, now)
    if left_out is None:
        return
    tool = await catalogue.named(ctx, scope, name) or _unknown(name)
    call = ToolInvocation(str(uuid7(now)), scope, {}, Surroundings())
    decoded = _storable(arguments)
    secrets = ctx.secrets.also(marked(decoded, tool.parameters))
    shown = as_json(secrets.masked(decoded, tool.parameters))
    if len(shown) > LONGEST_ARGUMENTS:
        shown = as_json(shortened(shown, LONGEST_ARGUMENTS))
    text = str(secrets.masked(f"{error.code}: {error.message}"))
    if left_out:
        text += f" {left_out:,} refused calls of this caller before it left no record."
    runner, limit = ctx.local.running_calls.runner, ctx.settings.tool_shown_chars
    end = CallEnd("failed", as_json(text), error.code)
    await ctx.write(
        partial(call_log.add_refused, tool=tool, call=call, arguments=shown, runner=runner, how=end, limit=limit)
    )


def _storable(arguments: Mapping[str, Any] | str) -> dict[str, Any] | str:
    """Arguments that can be kept; nothing has checked these."""
    if isinstance(arguments, str):
        return arguments
    try:
        json_safety.check(dict(arguments))
    except ValueError as error:
        return f"They are not JSON: {error}"
    return dict(arguments)


def _unknown(name: str) -> ToolInfo:
    """A stand-in for a tool that does not exist."""

    async def run(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        raise NotImplementedError

    return ToolInfo(
        name=inert_line(name)[:LONGEST_NAME],
        description="",
        parameters={},
        source=ToolPlace.LOCAL,
        kind=ToolKind.UNKNOWN,
        run=run,
        offered_by=Offerer(OffererKind.NOBODY),
    )

"""Functions of notebooks and other processes as tools. They run in the process that offered them."""

from __future__ import annotations

from functools import partial
from typing import cast

from workbench.functions.hosts import Found, HostedCall
from workbench.ops import Ctx
from workbench.rules.tools.returned import Form, ReturnedValue
from workbench.services.tools.tool import (
    Hints,
    Offerer,
    OffererKind,
    ToolInfo,
    ToolInvocation,
    ToolKind,
    ToolOutcome,
    ToolPlace,
    ToolScope,
)


async def tools(ctx: Ctx, scope: ToolScope) -> list[ToolInfo]:
    """The functions that processes offer."""
    return [_tool(function) for function in ctx.local.tool_hosts.tools()]


async def find(ctx: Ctx, scope: ToolScope, name: str) -> ToolInfo | None:
    """The function with a name."""
    function = ctx.local.tool_hosts.find(name)
    return _tool(function) if function else None


def _tool(function: Found) -> ToolInfo:
    offered = function.tool
    return ToolInfo(
        name=offered.name,
        title=offered.title or offered.name.replace("_", " ").capitalize(),
        description=offered.description,
        parameters=offered.parameters,
        result=offered.result,
        source=ToolPlace.LOCAL,
        kind=ToolKind.FUNCTION,
        hints=Hints(read_only=offered.read_only, destructive=not offered.read_only),
        version=offered.version or None,
        problem=function.problem,
        run=partial(run, function),
        offered_by=Offerer(OffererKind.NOTEBOOK, name=function.host),
    )


async def run(function: Found, ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    """Run a function in the process that offers it.

    Raises:
        Unavailable: ``TOOL_HOST_GONE``. WorkbenchError: what the process answered.
    """
    hosted = HostedCall(call_id=call.id, tool=function.tool.name, arguments=dict(call.arguments))
    answer = cast(ReturnedValue, await ctx.local.tool_hosts.run(function.host_id, hosted, call.surroundings.progress))
    return ToolOutcome(answer.content, answer.structured, is_wrapped=answer.form is Form.WRAPPED)

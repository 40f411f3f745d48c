"""The operations of Workbench as tools."""

from __future__ import annotations

import json
from functools import lru_cache, partial
from importlib import metadata

from workbench.model import Level
from workbench.ops import Ctx, Op, dispatch
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

DISTRIBUTION = "workbench-agents"
"""The package that has the operations, and whose version is theirs."""
MOST = 500
"""Operations of which the tools are kept: more than there are."""


async def tools(ctx: Ctx, scope: ToolScope) -> list[ToolInfo]:
    """The operations that a caller is offered."""
    return [of(op) for op in ctx.catalogue.values() if _is_offered(op, scope)]


async def find(ctx: Ctx, scope: ToolScope, name: str) -> ToolInfo | None:
    """An operation that a caller is offered."""
    op = ctx.catalogue.get(name)
    return of(op) if op is not None and _is_offered(op, scope) else None


def _is_offered(op: Op, scope: ToolScope) -> bool:
    """Whether an operation is a tool for a scope. The model of a conversation gets what planners get."""
    if not op.tool or not op.permits(scope.caller):
        return False
    least = Level.READ if scope.caller.level > Level.ANONYMOUS else Level.ANONYMOUS
    return op.allow >= least and (scope.is_person or op.allow < Level.OPERATOR)


@lru_cache(MOST)
def of(op: Op) -> ToolInfo:
    """An operation as a tool."""
    return ToolInfo(
        name=op.name,
        title=op.title,
        description=op.help,
        parameters=op.input_schema,
        result=op.output_schema,
        source=ToolPlace.LOCAL,
        kind=ToolKind.OPERATION,
        hints=Hints(read_only=op.reads, destructive=op.destructive, open_world=False),
        version=metadata.version(DISTRIBUTION),
        run=partial(_run, op),
        offered_by=Offerer(OffererKind.WORKBENCH),
    )


async def _run(op: Op, ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    done = await dispatch(ctx.catalogue, ctx.of(call.scope.caller), op.name, call.arguments, decoded=True)
    return ToolOutcome([{"type": "text", "text": json.dumps(done, ensure_ascii=False)}], done)

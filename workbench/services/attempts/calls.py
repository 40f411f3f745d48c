"""The calls of tools that an agent's program makes itself, as its supervisor hears of them.

Calls of Workbench's own server are recorded where they arrive (`workbench.services.tools.calls`), and not here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.model import Json, Level, Wire
from workbench.ops import Ctx, op
from workbench.ops.parameters import TaskId
from workbench.rules.tools.results import as_json
from workbench.rules.tools.surroundings import Surroundings
from workbench.services.attempts.work import AttemptNumber
from workbench.services.tasks import attempts, progress
from workbench.services.tasks.attempts import Key
from workbench.services.tools import call_log
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
from workbench.store.base import Tx

CallId = Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$", description="A new UUID version 7.")]
ToolName = Annotated[str, Field(min_length=1, max_length=200, description="The tool, as the program names it.")]


class StartedCall(Wire):
    """A call that has begun."""

    call_id: CallId
    tool: ToolName
    server: Annotated[str | None, Field(max_length=100, description="Its MCP server; null: one of the program's own.")]
    arguments: Annotated[Json, Field(description="What it was called with.")]


class EndedCall(Wire):
    """A call that has ended."""

    call_id: CallId
    result: Annotated[Json, Field(description="What it returned.")]
    state: Annotated[str, Field(pattern="^(completed|failed|interrupted)$", description="How it ended.")]


class ReportedCalls(Wire):
    """How many of the reported beginnings and ends are recorded now."""

    recorded: int


@op(allow=Level.WORKER, tool=False)
async def report_attempt_calls(
    ctx: Ctx,
    task_id: TaskId,
    attempt: AttemptNumber,
    key: Key,
    program: Annotated[str, Field(max_length=50, description="The program that calls.")],
    runner: Annotated[str, Field(max_length=100, description="The supervisor's process, as PID:STARTED.")],
    started: Annotated[list[StartedCall], Field(max_length=1_000, description="Calls that have begun.")] = [],
    ended: Annotated[list[EndedCall], Field(max_length=1_000, description="Calls that have ended.")] = [],
) -> ReportedCalls:
    """Record calls of tools that the program of an attempt makes itself, as the attempt's supervisor."""
    limit = ctx.settings.tool_shown_chars

    def change(tx: Tx) -> int:
        progress.held(tx, ctx.caller, task_id, attempt)
        attempts.require_supervisor(tx, task_id, attempt, key)
        for call in started:
            invocation = ToolInvocation(call.call_id, ToolScope(ctx.caller), {}, Surroundings())
            arguments = as_json(ctx.secrets.masked(call.arguments))
            call_log.add(tx, _tool(program, call), invocation, arguments, runner, limit)
        ends = [call for call in ended if call_log.is_of(tx, call.call_id, ctx.caller.agent, ToolKind.PROGRAM)]
        for end in ends:
            how = CallEnd(end.state, as_json(ctx.secrets.masked(end.result)))
            call_log.ended(tx, end.call_id, how, limit)
        return len(started) + len(ends)

    return ReportedCalls(recorded=await ctx.write(change, durable=False))


def _tool(program: str, call: StartedCall) -> ToolInfo:
    return ToolInfo(
        name=call.tool,
        description="",
        parameters={},
        source=ToolPlace.MCP if call.server else ToolPlace.LOCAL,
        kind=ToolKind.PROGRAM,
        run=_run,
        offered_by=Offerer(OffererKind.PROGRAM, program, program),
        server=call.server,
    )


async def _run(ctx: Ctx, invocation: ToolInvocation) -> ToolOutcome:
    """Nothing is run here: the program has called it."""
    raise NotImplementedError

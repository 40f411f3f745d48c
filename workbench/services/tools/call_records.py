"""The calls that were made: listed, read whole, and cancelled while they run."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import Conflict, Hint, NotFound
from workbench.model import Capability, Int64, Json, Level, Micros, Wire
from workbench.ops import Caller, Command, Ctx, RestRoute, op
from workbench.rules.wire import paging
from workbench.rules.wire.paging import Cursor, Limit
from workbench.services.tools import call_log
from workbench.services.tools.tool import ToolKind, ToolPlace
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)
SHOWN = 500
"""Characters of the arguments and the result that a list has."""
_NEWEST = "g"
"""Sorts after every id of a call, which begins with a hexadecimal digit."""

State = Literal["waiting", "running", "completed", "failed", "cancelled", "interrupted"]
CallId = Annotated[str, Field(min_length=1, max_length=100, description="The call's id; see list_tool_calls.")]


class ToolCall(Wire):
    """A call of a tool, with the beginning of its arguments and its result as JSON text.

    `offered_by`: whose tool it was: workbench, notebook, project, definition:ID, node:RID or program:NAME; empty: not
    recorded. `offerer_name`: the process, definition, node or program; `configuration` identifies how the MCP server
    was configured. `waiting`: the operator is asked. `interrupted`: the program that ran it ended first. `wait_ms`:
    until it started or was refused. `origin_node`: the node of the network that sent it, with `origin_call`, its id
    there, and `origin_caller`, the agent there. `progress`: how far it was when it last said so, of `progress_total` if
    that is known. `input_tokens`, `output_tokens`, `cost_usd`: what a model behind the tool has used, as far as that is
    known.
    """

    call_id: str
    tool_name: str
    source: ToolPlace
    kind: ToolKind
    server: str | None
    offered_by: str
    offerer_name: str
    configuration: str | None
    version: str | None
    caller: str
    agent_id: str | None
    task_id: int | None
    attempt: int | None
    conversation_id: str | None
    definition_id: str | None
    definition_hash: str | None
    origin_node: str | None
    origin_call: str | None
    origin_caller: str | None
    state: State
    error_code: str | None
    approval_id: int | None
    requested_at: Micros
    started_at: Micros | None
    ended_at: Micros | None
    wait_ms: int | None
    duration_ms: int | None
    progress: float | None
    progress_total: float | None
    progress_message: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    tool_input: str
    tool_result: str | None


class WholeToolCall(ToolCall):
    """A call of a tool with all of its arguments and its result; secrets are masked."""

    arguments: Json
    result: Json


class ToolCalls(Wire):
    """Calls of tools, the newest first. For the next page send `next_cursor` as `cursor`."""

    calls: list[ToolCall]
    next_cursor: str | None


@op(
    allow=Level.READ,
    reads=True,
    requires=Capability.TOOLS,
    tool=False,
    command="tools calls",
    rest=RestRoute("GET", "/tool-calls", rows="calls"),
)
async def list_tool_calls(
    ctx: Ctx,
    name: Annotated[str | None, Field(max_length=200, description="Only of this tool.")] = None,
    source: Annotated[ToolPlace | None, Field(description="Only local or mcp.")] = None,
    server: Annotated[
        str | None, Field(max_length=100, description="Only of this MCP server, or this agent's traits.")
    ] = None,
    state: Annotated[State | Literal["open"] | None, Field(description="Only in this state; open: not ended.")] = None,
    agent_id: Annotated[str | None, Field(max_length=200, description="Only of this agent.")] = None,
    task_id: Annotated[Int64 | None, Field(description="Only for this task.")] = None,
    conversation_id: Annotated[str | None, Field(max_length=100, description="Only of this conversation.")] = None,
    origin_node: Annotated[str | None, Field(max_length=300, description="Only those that this node has sent.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ToolCalls:
    """List calls of tools, the newest first: an agent its own, the operator all."""
    values = {
        "tool": name,
        "source": source,
        "server": server,
        "state": state,
        "agent": agent_id,
        "task": task_id,
        "conversation": conversation_id,
        "origin": origin_node,
        "own": _own(ctx.caller),
        "before": paging.decode(cursor, str)[0] if cursor else _NEWEST,
        "limit": limit + 1,
        "shown": SHOWN,
    }
    rows = await ctx.read(lambda tx: tx.all(SQL.list, values))
    shown, following = paging.cut(rows, limit, "call_id")
    return ToolCalls(calls=[ToolCall(**_columns(row)) for row in shown], next_cursor=following)


@op(
    allow=Level.READ,
    reads=True,
    requires=Capability.TOOLS,
    tool=False,
    command="tools calls",
    rest=RestRoute("GET", "/tool-calls/{call_id}"),
)
async def get_tool_call(ctx: Ctx, call_id: CallId) -> WholeToolCall:
    """Get a call of a tool with all of its arguments and its result."""
    row = await ctx.read(lambda tx: _require(tx, ctx.caller, call_id))
    whole: dict[str, Any] = {"arguments": json.loads(row["arguments"]), "result": json.loads(row["result"] or "null")}
    return WholeToolCall(**_columns(row), **whole)


def result_of(tx: Reader, call_id: str) -> Any:
    """The result of a call, as it is recorded; None if there is none."""
    row = tx.one(SQL.get, id=call_id, own=None, shown=0)
    return json.loads(row["result"]) if row is not None and row["result"] else None


@op(
    allow=Level.WORKER,
    requires=Capability.TOOLS,
    tool=False,
    command=Command("tools cancel CALL", "{tool_name} is {state}."),
    rest=RestRoute("POST", "/tool-calls/{call_id}/cancel"),
)
async def cancel_tool_call(ctx: Ctx, call_id: CallId) -> ToolCall:
    """Cancel a call of a tool that waits or runs, in whichever process. Its caller gets TOOL_CANCELLED."""
    row = await ctx.read(lambda tx: _require(tx, ctx.caller, call_id))
    if row["ended_at"] is not None:
        raise Conflict("CALL_ENDED", f"The call has ended: it is {row['state']}.")
    if not ctx.local.running_calls.cancel(call_id, ctx.caller.name):
        await call_log.interrupt_lost(ctx)
        await ctx.write(lambda tx: call_log.cancel_elsewhere(tx, call_id))
    ended = await ctx.feed.until(
        lambda tx: _require(tx, ctx.caller, call_id),
        lambda call: call["ended_at"] is not None,
        "tool.*",
        subject=f"tool_call:{call_id}",
        seconds=ctx.settings.wait_limit_seconds,
    )
    if ended["ended_at"] is None:
        raise Conflict("CALL_NOT_CANCELLED", "The call goes on: the tool, or the process that runs it, does not stop.")
    return ToolCall(**_columns(ended))


def _require(tx: Reader, caller: Caller, call_id: str) -> Row:
    row = tx.one(SQL.get, id=call_id, own=_own(caller), shown=SHOWN)
    if row is None:
        raise NotFound("CALL_NOT_FOUND", f"There is no call {call_id!r} of a tool.", Hint("list_tool_calls"))
    return row


def _own(caller: Caller) -> str | None:
    """The agent whose calls a caller may see; None: all."""
    return None if caller.level is Level.OPERATOR else caller.agent


def _columns(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ToolCall.model_fields}

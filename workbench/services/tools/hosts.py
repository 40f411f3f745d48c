"""The interface of processes that offer functions as tools, such as kernels: see `workbench.functions.hosts`.

Only the operator's own processes use it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Unavailable, from_dict
from workbench.functions.hosts import WORKBENCH, HostCalls, OfferedTool
from workbench.model import SECOND, Level, Wire
from workbench.ops import Ctx, Ok, op
from workbench.ops.duties import duty
from workbench.rules.tools.returned import ReturnedValue
from workbench.system import atomic_file

HostId = Annotated[str, Field(min_length=1, max_length=64, description="An id that the host chooses for itself.")]
CallId = Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$", description="The id of a call.")]
Wait = Annotated[float, Field(ge=0, le=30, description="How long to wait for something to do.")]
LOG_BYTES = 1_048_576
DAY_SECONDS = 86_400


class Offered(Wire):
    """What became of an offer. `taken`: names that are not offered, because operations have them, or other processes
    that are named here."""

    taken: dict[str, str]


class Delivered(Wire):
    """Whether the caller still waited for the answer."""

    delivered: bool


class ToolLog(Wire):
    """The last lines that a function printed while it ran for a call; empty if it printed nothing."""

    call_id: str
    lines: list[str]


@op(allow=Level.OPERATOR, needs_server=True, tool=False)
async def offer_tools(
    ctx: Ctx,
    host_id: HostId,
    name: Annotated[str, Field(min_length=1, max_length=100, description="What people call the host.")],
    tools: Annotated[list[OfferedTool], Field(max_length=1_000, description="The tools.")],
    add: Annotated[bool, Field(description="Keep the tools that the host offers already.")] = False,
    process: Annotated[
        str, Field(max_length=300, description="Identifies the process among those of all machines.")
    ] = "",
) -> Offered:
    """Offer functions of a process as tools.

    One whose name another process has is not offered, unless it says that it replaces that one.
    """
    free = [tool for tool in tools if tool.name not in ctx.catalogue]
    taken = ctx.local.tool_hosts.offer(host_id, name, free, add=add, process=process)
    await _announce(ctx)
    return Offered(taken={tool.name: WORKBENCH for tool in tools if tool.name in ctx.catalogue} | taken)


@op(allow=Level.OPERATOR, needs_server=True, tool=False)
async def withdraw_tools(
    ctx: Ctx,
    host_id: HostId,
    names: Annotated[list[str] | None, Field(description="None: all tools, with the calls that run.")] = None,
) -> Ok:
    """Withdraw tools that a process has offered."""
    ctx.local.tool_hosts.withdraw(host_id, names)
    await _announce(ctx)
    return Ok()


@op(allow=Level.OPERATOR, reads=True, needs_server=True, tool=False)
async def take_tool_calls(
    ctx: Ctx,
    host_id: HostId,
    running: Annotated[list[str], Field(description="The calls that the host runs.")] = [],
    wait_seconds: Wait = 0,
) -> HostCalls:
    """Get the calls that a process has to start or to interrupt, as long as it does not name them as running."""
    return await ctx.local.tool_hosts.take(host_id, running, wait_seconds)


@op(allow=Level.OPERATOR, needs_server=True, tool=False)
async def report_tool_progress(
    ctx: Ctx,
    host_id: HostId,
    call_id: CallId,
    progress: Annotated[float, Field(description="How much is done.")],
    total: Annotated[float | None, Field(description="How much there is to do; None: unknown.")] = None,
    message: Annotated[str | None, Field(max_length=1_000, description="What is being done.")] = None,
) -> Ok:
    """Report how far a call is to its caller."""
    await ctx.local.tool_hosts.report(host_id, call_id, progress, total, message)
    return Ok()


@op(allow=Level.OPERATOR, needs_server=True, tool=False)
async def finish_tool_call(
    ctx: Ctx,
    host_id: HostId,
    call_id: CallId,
    answer: Annotated[ReturnedValue | None, Field(description="What the function returned.")] = None,
    error: Annotated[
        dict[str, Any] | None, Field(description="Code, message, details and status of a failure.")
    ] = None,
) -> Delivered:
    """Answer a call."""
    result = from_dict(error) if error is not None else answer or ReturnedValue(value=None)
    with suppress(OSError, Unavailable):  # it has printed nothing, or its log stays as it is
        await asyncio.to_thread(ctx.secrets.mask_file, _log_of(ctx, call_id))
    return Delivered(delivered=ctx.local.tool_hosts.finish(host_id, call_id, result))


@op(allow=Level.OPERATOR, reads=True, tool=False)
async def get_tool_log(
    ctx: Ctx,
    call_id: CallId,
    lines: Annotated[int, Field(ge=1, le=10_000, description="How many of the last lines.")] = 200,
) -> ToolLog:
    """Get what a function printed while it ran for a call, and the traceback if it failed."""
    text = await asyncio.to_thread(_read, _log_of(ctx, call_id))
    return ToolLog(call_id=call_id, lines=ctx.secrets.masked(text).splitlines()[-lines:])


def _log_of(ctx: Ctx, call_id: str) -> Path:
    """What a function printed while it ran for a call; its process masks what the schema of its arguments marks."""
    return ctx.settings.tool_logs / f"{call_id}.log"


@duty("watching hosts of tools", 1.0)
async def watch(ctx: Ctx) -> None:
    """Note the hosts that no longer ask for calls."""
    ctx.local.tool_hosts.tick()
    await _announce(ctx)


@duty("pruning logs of tools", 600.0)
async def prune_logs(ctx: Ctx) -> None:
    """Delete what functions printed longer ago than it is kept."""
    before = ctx.store.now() / SECOND - ctx.settings.keep_tool_logs_days * DAY_SECONDS
    await asyncio.to_thread(_prune, ctx.settings.tool_logs, before)


async def _announce(ctx: Ctx) -> None:
    """Emit an event if the tools have changed since the last one."""
    if ctx.local.tool_hosts.has_changed:
        ctx.local.tool_hosts.has_changed = False
        await ctx.write(lambda tx: tx.emit("tools.changed", "tools", kind="function"))


def _prune(directory: Path, before: float) -> None:
    """Delete the logs that were written last before a time, in seconds since the epoch."""
    for path in directory.glob("*.log"):
        with suppress(OSError):  # another server has deleted it; or the directory cannot be written now
            if path.lstat().st_mtime < before:
                path.unlink()


def _read(path: Path) -> str:
    try:
        return atomic_file.tail(path, LOG_BYTES)
    except OSError:
        return ""

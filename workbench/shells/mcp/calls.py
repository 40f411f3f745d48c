"""Calls that may ask their client: tools that are no operations, also by `call_tool`, which tell of their progress, and
`ask_person`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from mcp.types import CallToolRequestParams, CallToolResult, InputRequiredResult

from workbench.present.inert import inert
from workbench.rules.tools.surroundings import Surroundings
from workbench.shells.mcp.backend import Backend, Context, refusing
from workbench.shells.mcp.progress import ToolReports
from workbench.shells.mcp.questions import Exchanges, ToolExchange, ask, can_answer, has_requests
from workbench.shells.mcp.tasks import Asked, McpTask, McpTasks
from workbench.shells.mcp.tools import coded, named_call, outcome, structured

BY_NAME, ASKING = "call_tool", "ask_person"
"""The operation that calls a tool, and the one that asks the person at the client."""

ToolAnswer = CallToolResult | InputRequiredResult | dict[str, Any]
"""What answers a call: a result, questions, or a task."""


class McpCalls:
    """The calls of a server's clients."""

    def __init__(self, backend: Backend, tasks: McpTasks) -> None:
        self._backend = backend
        self._tasks = tasks
        self._exchanges = Exchanges()

    async def call(self, ctx: Context, params: CallToolRequestParams) -> ToolAnswer:
        """Call a tool, or go on with a call that has asked its client."""
        run = partial(self._run, ctx, params)
        if has_requests(ctx):
            reports = ToolReports()
            async with reports.sent_to(ctx):
                return await run(Surroundings(reports, partial(ask, ctx) if can_answer(ctx) else None, reports.follow))
        async with refusing(ctx):
            exchange = self._exchanges.resumed(params) or ToolExchange(run, may_ask=can_answer(ctx))
            async with exchange.reports.sent_to(ctx):
                result = await self._tasks.following(ctx, exchange, params.input_responses)
            return self._answer(ctx, exchange, result)

    async def run(self, ctx: Context, work: Callable[[], Awaitable[CallToolResult]]) -> ToolAnswer:
        """Run what asks nothing."""
        if not self._tasks.serves(ctx):
            return await work()
        exchange = ToolExchange(lambda _: work(), may_ask=False)
        return self._answer(ctx, exchange, await self._tasks.following(ctx, exchange))

    def _answer(self, ctx: Context, exchange: ToolExchange, result: CallToolResult | Asked | McpTask) -> ToolAnswer:
        if isinstance(result, McpTask):
            return self._tasks.created(result)
        return result if isinstance(result, CallToolResult) else self._exchanges.asked(ctx, exchange, result)

    async def _run(self, ctx: Context, params: CallToolRequestParams, surroundings: Surroundings) -> CallToolResult:
        async def run() -> CallToolResult:
            name, arguments = params.name, params.arguments or {}
            if name == BY_NAME:
                asking = _asking_by_name(str(arguments.get("name")), surroundings)
                return named_call(await self._backend.call(ctx, name, arguments, asking))
            if name == ASKING:
                return structured(await self._backend.call(ctx, name, arguments, surroundings))
            asking = _asking_by_name(name, surroundings)
            return outcome(await self._backend.call_tool(ctx, name, arguments, asking), ctx)

        return await coded(run)


def _asking_by_name(name: str, surroundings: Surroundings) -> Surroundings:
    """Surroundings in which every question names the tool that asks it: nothing else of it is Workbench's."""
    elicit = surroundings.elicit
    if elicit is None:
        return surroundings

    def asked(message: str, schema: Mapping[str, Any]) -> Awaitable[dict[str, Any]]:
        return elicit(f"The tool {name} asks: {inert(message)}", schema)

    return replace(surroundings, elicit=asked)

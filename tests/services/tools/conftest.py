"""Tools that a test offers, and calls of them by an agent, by a model and by the operator."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from workbench.app import Workbench
from workbench.ops import OPERATOR, Caller, Ctx
from workbench.services.tools import calls, catalogue
from workbench.services.tools.sources import SOURCES
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
from workbench.store.queries import Query

CHAT = ToolScope(OPERATOR, conversation_id="c1")
"""The model of a conversation."""
ALL = Query("all", "SELECT * FROM tool_calls ORDER BY id")
Run = Callable[[Ctx, ToolInvocation], Awaitable[ToolOutcome]]


async def echo(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    """Return the arguments."""
    return ToolOutcome([], dict(call.arguments))


def tool_of(name: str, run: Run = echo, **more: Any) -> ToolInfo:
    """A tool of an MCP server, which may change something unless said otherwise."""
    described: dict[str, Any] = {"description": f"Do {name}", "parameters": {"type": "object"}, "server": "hub"}
    described["offered_by"] = Offerer(OffererKind.PROJECT, configuration="hub")
    return ToolInfo(name=name, source=ToolPlace.MCP, kind=ToolKind.MCP, run=run, **{**described, **more})


class Shelf:
    """A source with the tools that a test puts there."""

    def __init__(self) -> None:
        self._tools: dict[str, ToolInfo] = {}

    def put(self, name: str, run: Run = echo, **more: Any) -> ToolInfo:
        """Offer a tool, in place of one with its name."""
        made = self._tools[name] = tool_of(name, run, **more)
        return made

    def change(self, name: str, **changes: Any) -> None:
        """Offer a tool otherwise than before."""
        self._tools[name] = replace(self._tools[name], **changes)

    def remove(self, name: str) -> None:
        """Offer a tool no more."""
        del self._tools[name]

    async def tools(self, ctx: Ctx, scope: ToolScope) -> list[ToolInfo]:
        """All of them."""
        return list(self._tools.values())

    async def find(self, ctx: Ctx, scope: ToolScope, name: str) -> ToolInfo | None:
        """One of them."""
        return self._tools.get(name)


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """See `Shelf`; it is a source of the catalogue."""
    made = Shelf()
    monkeypatch.setattr(catalogue, "SOURCES", (*SOURCES, made))
    return made


READING = Hints(read_only=True)


class Hanging:
    """A tool that runs until it is cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        """Run it."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        raise AssertionError("nothing sets it")


@pytest.fixture
def hanging(shelf: Shelf) -> Hanging:
    """See `Hanging`; it is `hub__wait`, and only reads."""
    made = Hanging()
    shelf.put("hub__wait", made, hints=READING)
    return made


async def rows(workbench: Workbench) -> list[dict[str, Any]]:
    """Every call, as it is stored."""
    return [dict(row) for row in await workbench.store.read(lambda tx: tx.all(ALL))]


async def events(workbench: Workbench, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of some kinds, with their data."""
    found = (await workbench.call("list_events", kinds=list(kinds)))["events"]
    return [(event["kind"], event["data"]) for event in found]


def begin(
    workbench: Workbench, name: str, arguments: dict[str, Any] | None = None, scope: ToolScope = CHAT
) -> asyncio.Task[calls.Finished]:
    """A call that has begun."""
    made: Coroutine[Any, Any, calls.Finished] = calls.call(workbench._ctx, scope, name, arguments or {})
    return asyncio.create_task(made)


def as_agent(caller: Caller) -> ToolScope:
    """The scope of an agent."""
    return ToolScope(caller)


async def question(workbench: Workbench) -> dict[str, Any]:
    """The question about the call that waits."""
    return (await questions(workbench, 1))[0]


async def questions(workbench: Workbench, number: int) -> list[dict[str, Any]]:
    """The questions about calls, when there are so many."""
    async with workbench.feed.subscribe("approval.*") as news:
        while len(approvals := (await workbench.call("list_approvals", kind="tool_call"))["approvals"]) < number:
            await anext(news)
    return list(approvals)


async def ended_with(*waiting: asyncio.Task[calls.Finished]) -> list[str | None]:
    """The results or errors of calls."""
    await asyncio.wait(waiting)
    return [code_of(one) for one in waiting]


def code_of(ended: asyncio.Task[calls.Finished]) -> str | None:
    """The code with which a call failed; None if it did not."""
    return getattr(ended.exception(), "code", None)

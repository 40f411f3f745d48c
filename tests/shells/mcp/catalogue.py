"""Tools of the catalogue that tests control."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from workbench.ops import Ctx
from workbench.services.tools import catalogue
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

Run = Callable[[Ctx, ToolInvocation], Awaitable[ToolOutcome]]


class Tools:
    """A source of tools; `offer` adds one."""

    def __init__(self) -> None:
        self._tools: dict[str, ToolInfo] = {}

    def offer(self, name: str, run: Run, *, server: str | None = None, reads: bool = True, **more: Any) -> None:
        """Offer a tool: a function of a notebook, or one of an MCP server."""
        source, kind = (ToolPlace.MCP, ToolKind.MCP) if server else (ToolPlace.LOCAL, ToolKind.FUNCTION)
        parameters = more.pop("parameters", {"type": "object"})
        hints = Hints(read_only=reads)
        offerer = Offerer(OffererKind.PROJECT if server else OffererKind.NOTEBOOK)
        self._tools[name] = ToolInfo(
            name, f"Does {name}.", parameters, source, kind, run, offerer, server=server, hints=hints, **more
        )

    def withdraw(self, name: str) -> None:
        del self._tools[name]

    async def tools(self, ctx: Ctx, scope: ToolScope) -> list[ToolInfo]:
        return list(self._tools.values())

    async def find(self, ctx: Ctx, scope: ToolScope, name: str) -> ToolInfo | None:
        return self._tools.get(name)


def returning(*content: dict[str, Any], structured: Any = None, is_error: bool = False) -> Run:
    """A tool that returns this."""

    async def run(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        return ToolOutcome([*content], structured, is_error)

    return run


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


class Endless:
    """A tool that ends only when it is cancelled."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.was_cancelled = asyncio.Event()

    async def __call__(self, ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise
        raise AssertionError


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Tools:
    """The tools of the catalogue besides the operations."""
    made = Tools()
    monkeypatch.setattr(catalogue, "SOURCES", [*SOURCES, made])
    return made

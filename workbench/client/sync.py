"""The agent for programs without an event loop: a thread of its own runs one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Any, Self

from workbench.client.agent import Agent
from workbench.client.messages import no_server
from workbench.errors import WorkbenchError
from workbench.system.loop_thread import LoopThread

STOP_SECONDS = 15.0


class SyncAgent:
    """An agent whose methods wait for their result. A context manager; takes what `Agent` takes."""

    def __init__(self, url: str, **options: Any) -> None:
        self._agent = Agent(url, **options)
        self._thread = LoopThread("workbench-agent", self._main, _closed_error)

    @property
    def token(self) -> str | None:
        """The token that it authenticates with from now on; keep it."""
        return self._agent.token

    @property
    def agent_id(self) -> str | None:
        """The id a person gave it."""
        return self._agent.agent_id

    def __enter__(self) -> Self:
        self._thread.start(STOP_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.stop(STOP_SECONDS)

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation; see `Agent.call`."""
        return self._thread.call(self._agent.call(name, **arguments))

    def read(self, resource_type: str = "contexts", **arguments: Any) -> dict[str, Any]:
        """Read; see `Agent.read`."""
        return self._thread.call(self._agent.read(resource_type, **arguments))

    def write(self, title: str, content: str, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Write a context; see `Agent.write`."""
        return self._thread.call(self._agent.write(title, content, metadata))

    def subscribe(self, *kinds: str, after: int | None = None, mine: bool = True) -> Iterator[dict[str, Any]]:
        """Events as they happen; see `Agent.subscribe`."""
        events = self._agent.subscribe(*kinds, after=after, mine=mine)
        try:
            while True:
                yield self._thread.call(_next(events))
        finally:
            with contextlib.suppress(WorkbenchError):  # the thread has ended, and the subscription with it
                self._thread.call(_end(events))

    async def _main(self, opened: Callable[[None], None]) -> None:
        async with self._agent:
            opened(None)
            await asyncio.Event().wait()


async def _next(events: AsyncGenerator[dict[str, Any], None]) -> dict[str, Any]:
    return await anext(events)


async def _end(events: AsyncGenerator[dict[str, Any], None]) -> None:
    await events.aclose()


def _closed_error() -> WorkbenchError:
    return no_server(ConnectionError("the agent was closed"))

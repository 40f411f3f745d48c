"""The agent for programs without an event loop: a thread of its own runs one."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping
from typing import Any, Self, TypeVar

from workbench.client.agent import Agent

T = TypeVar("T")


class SyncAgent:
    """An agent whose methods wait for their result. A context manager; takes what `Agent` takes."""

    def __init__(self, url: str, **options: Any) -> None:
        self._agent = Agent(url, **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="workbench-agent", daemon=True)

    @property
    def token(self) -> str | None:
        """What it authenticates with from now on; to be kept."""
        return self._agent.token

    @property
    def agent_id(self) -> str | None:
        """The id a person gave it."""
        return self._agent.agent_id

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._wait(self._agent.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._wait(self._agent.__aexit__())
        finally:
            self._stop()

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation; see `Agent.call`."""
        return self._wait(self._agent.call(name, **arguments))

    def read(self, resource_type: str = "contexts", **arguments: Any) -> dict[str, Any]:
        """Read; see `Agent.read`."""
        return self._wait(self._agent.read(resource_type, **arguments))

    def write(self, title: str, content: str, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Write a context; see `Agent.write`."""
        return self._wait(self._agent.write(title, content, metadata))

    def subscribe(self, *kinds: str, after: int | None = None) -> Iterator[dict[str, Any]]:
        """Events as they happen; see `Agent.subscribe`."""
        events = self._agent.subscribe(*kinds, after=after)

        async def following() -> dict[str, Any]:
            return await anext(events)

        try:
            while True:
                yield self._wait(following())
        finally:
            if self._loop.is_running():
                self._wait(_closed(events))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise

    def _stop(self) -> None:
        with contextlib.suppress(RuntimeError):
            asyncio.run_coroutine_threadsafe(self._quiet(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _quiet(self) -> None:
        """End whatever still runs in the loop."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


async def _closed(events: AsyncGenerator[Any, None]) -> None:
    await events.aclose()

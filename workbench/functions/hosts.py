"""Processes that offer functions as tools, such as kernels and stand-alone agents, and the calls that they run.

A host asks for its calls in a loop, and names those that it already runs: an answer that was lost is given again, and
nothing has to be agreed when a connection breaks. Nothing is stored. A host that is unknown, because the server is a
new one, offers its tools again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from workbench.errors import NotFound, Unavailable, WorkbenchError
from workbench.model import Wire
from workbench.process import has_ended
from workbench.rules.tools.surroundings import ProgressReceiver

WORKBENCH = "Workbench"
"""Who has a name that an operation has."""
SILENT_TICKS = 5
"""A host that has not asked for so many ticks counts as gone. Ticks, because they stop with the server itself."""
FORGET_TICKS = 3_600
"""After so many, a host that is gone is forgotten with its tools."""


class OfferedTool(Wire):
    """A tool of a host."""

    name: Annotated[str, Field(min_length=1, max_length=64, description="What callers call it.")]
    description: Annotated[str, Field(description="What it does, for models.")]
    parameters: Annotated[dict[str, Any], Field(description="JSON Schema of the arguments.")]
    result: Annotated[dict[str, Any] | None, Field(description="JSON Schema of the structured result.")] = None
    title: Annotated[str | None, Field(description="Its name for people.")] = None
    read_only: Annotated[bool, Field(description="It changes nothing.")] = False
    version: Annotated[str, Field(description="Changes when the tool does.")] = ""
    trait: Annotated[
        str | None,
        Field(max_length=128, description="The agent whose trait it is; empty: the node's own; null: it is no trait."),
    ] = None
    replaces: Annotated[bool, Field(description="Take the name from another process that offers a tool with it.")] = (
        False
    )


class Found(NamedTuple):
    """A tool as a host offers it.

    Args:
        host: the host's name, for people.
        problem: why it cannot be called now; None if it can.
    """

    tool: OfferedTool
    host_id: str
    host: str
    problem: str | None


class HostedCall(Wire):
    """A call that a host has to run."""

    call_id: str
    tool: str
    arguments: dict[str, Any]


class HostCalls(Wire):
    """What a host has to do: calls to start, and ids of calls to interrupt."""

    calls: list[HostedCall] = []
    cancelled: list[str] = []


@dataclass
class _Open:
    """A call whose caller waits."""

    call: HostedCall
    result: asyncio.Future[Any]
    progress: ProgressReceiver | None


@dataclass
class _Host:
    """A host as the server knows it. `offers`: when it offered each tool, as numbers. `asking` counts its requests that
    wait."""

    id: str
    name: str
    process: str
    tools: dict[str, OfferedTool] = field(default_factory=dict)
    offers: dict[str, int] = field(default_factory=dict)
    open: dict[str, _Open] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    asking: int = 0
    silent_ticks: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_gone(self) -> bool:
        """Whether it no longer asks for calls."""
        return self.silent_ticks >= SILENT_TICKS

    @property
    def has_ended(self) -> bool:
        """Whether it does not ask any more, or its process has ended, as that of a kernel that was restarted."""
        return self.is_gone or has_ended(self.process) is True

    def to_do(self, running: Collection[str]) -> HostCalls:
        """What it has to do, if it runs these calls."""
        return HostCalls(
            calls=[one.call for call_id, one in self.open.items() if call_id not in running],
            cancelled=[call_id for call_id in running if call_id in self.cancelled],
        )


class ToolHosts:
    """The hosts of a project, by ids that they choose. Everything happens on one loop.

    `has_changed` is set when the tools, or which of them can be called, have changed; its reader resets it.
    """

    def __init__(self) -> None:
        self.has_changed = False
        self._hosts: dict[str, _Host] = {}
        self._numbers = count()

    def offer(
        self, host_id: str, name: str, tools: Iterable[OfferedTool], *, add: bool, process: str = ""
    ) -> dict[str, str]:
        """Make tools of a host known, but for those whose names other hosts have and that are not to replace these:
        the names of these, with those of the hosts.

        Args:
            name: of the host, for people.
            add: keep what the host offers already; otherwise these replace it.
            process: of the host; see `process_identity`.

        Raises:
            NotFound: ``UNKNOWN_TOOL_HOST``: with `add`, offer everything.
        """
        host = self._known(host_id) if add else self._hosts.get(host_id, _Host(host_id, name, process))
        offered = {tool.name: tool for tool in tools}
        taken = {
            name: other.name
            for name, tool in offered.items()
            if not tool.replaces and (other := self._host_of(name)) not in (None, host) and not other.has_ended
        }
        offered = {name: tool for name, tool in offered.items() if name not in taken}
        host.tools = {**host.tools, **offered} if add else offered
        host.silent_ticks = 0
        host.offers |= dict.fromkeys(offered, next(self._numbers))
        self._hosts[host_id] = host
        self.has_changed = True
        return taken

    def withdraw(self, host_id: str, names: Collection[str] | None = None) -> None:
        """Forget tools of a host; None: the host, whose calls fail. Does nothing if it is unknown."""
        host = self._hosts.get(host_id)
        if host is None:
            return
        if names is None:
            del self._hosts[host_id]
            _fail(host, f"{host.name} was stopped")
        else:
            host.tools = {name: tool for name, tool in host.tools.items() if name not in names}
        self.has_changed = True

    async def take(self, host_id: str, running: Collection[str], wait_seconds: float) -> HostCalls:
        """What a host has to do; waits until there is something, or for so long.

        Args:
            running: the calls that it runs.

        Raises:
            NotFound: ``UNKNOWN_TOOL_HOST``: offer the tools again.
        """
        host = self._known(host_id)
        host.cancelled &= set(running)  # the others have ended there, or never begun
        host.asking += 1
        try:
            self._returned(host)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_seconds):
                    while host.to_do(running) == HostCalls():
                        host.news.clear()
                        await host.news.wait()
                        self._known(host_id)
            return host.to_do(running)
        finally:
            host.asking -= 1

    def finish(self, host_id: str, call_id: str, result: Any | WorkbenchError) -> bool:
        """Answer a call; whether its caller still waited.

        Raises:
            NotFound: ``UNKNOWN_TOOL_HOST``.
        """
        host = self._known(host_id)
        host.cancelled.discard(call_id)
        call = host.open.pop(call_id, None)
        if call is None or call.result.done():
            return False
        if isinstance(result, WorkbenchError):
            call.result.set_exception(result)
        else:
            call.result.set_result(result)
        return True

    async def report(self, host_id: str, call_id: str, done: float, total: float | None, message: str | None) -> None:
        """Pass on how far a call is; does nothing for a call whose caller does not wait.

        Raises:
            NotFound: ``UNKNOWN_TOOL_HOST``.
        """
        call = self._known(host_id).open.get(call_id)
        if call is not None and call.progress is not None:
            await call.progress(done, total, message)

    async def run(self, host_id: str, call: HostedCall, progress: ProgressReceiver | None) -> Any:
        """Run a call by a host. Cancelling this interrupts the function.

        Raises:
            Unavailable: ``TOOL_HOST_GONE``. WorkbenchError: what the host answered.
        """
        host = self._hosts.get(host_id)
        if host is None or host.is_gone:
            raise _gone(call.tool, f"{host.name} does not answer" if host else "the process that offered it has ended")
        waiting = _Open(call, asyncio.get_running_loop().create_future(), progress)
        waiting.result.add_done_callback(_retrieved)  # also if the caller no longer waits
        host.open[call.call_id] = waiting
        host.news.set()
        try:
            return await waiting.result
        except asyncio.CancelledError:
            host.cancelled.add(call.call_id)
            host.news.set()
            raise
        finally:
            host.open.pop(call.call_id, None)

    def tick(self) -> None:
        """Note which hosts no longer ask; call it in regular intervals. Calls that they run fail."""
        for host_id, host in list(self._hosts.items()):
            host.silent_ticks = 0 if host.asking else host.silent_ticks + 1
            if host.silent_ticks == SILENT_TICKS:
                _fail(host, f"{host.name} does not answer")
                self.has_changed = True
            elif host.silent_ticks >= FORGET_TICKS:
                self.withdraw(host_id)

    def tools(self) -> Iterator[Found]:
        """The tools, each once; see `find`."""
        for name in dict.fromkeys(name for host in self._hosts.values() for name in host.tools):
            if found := self.find(name):
                yield found

    def find(self, name: str) -> Found | None:
        """A tool as the host offers it that runs it."""
        host = self._host_of(name)
        if host is None:
            return None
        return Found(host.tools[name], host.id, host.name, f"{host.name} does not answer" if host.is_gone else None)

    def traits(self, agent: str, *, is_default: bool = False) -> Iterator[Found]:
        """The tools that are traits of an agent.

        Args:
            is_default: those that name no agent are this one's, too.
        """
        return (found for found in self.tools() if found.tool.trait == agent or (is_default and found.tool.trait == ""))

    def _known(self, host_id: str) -> _Host:
        if host_id not in self._hosts:
            raise NotFound("UNKNOWN_TOOL_HOST", "The server does not know this host of tools. Offer all its tools.")
        return self._hosts[host_id]

    def _host_of(self, tool: str) -> _Host | None:
        """The host that offered a tool last; one that answers, if there is one."""
        having = sorted(
            (host for host in self._hosts.values() if tool in host.tools), key=lambda host: host.offers[tool]
        )
        return next((host for host in reversed(having) if not host.is_gone), having[-1] if having else None)

    def _returned(self, host: _Host) -> None:
        """A host asks, that may have been taken for gone."""
        was_gone, host.silent_ticks = host.is_gone, 0
        if was_gone:
            self.has_changed = True


def _fail(host: _Host, reason: str) -> None:
    """Fail the calls of a host; it interrupts them, should it still run."""
    for call_id, call in host.open.items():
        if not call.result.done():
            call.result.set_exception(_gone(call.call.tool, reason))
            host.cancelled.add(call_id)
    host.news.set()


def _retrieved(result: asyncio.Future[Any]) -> None:
    """asyncio would report an error that is never retrieved."""
    if not result.cancelled():
        result.exception()


def _gone(tool: str, reason: str) -> Unavailable:
    return Unavailable(
        "TOOL_HOST_GONE",
        f"{tool} cannot run: {reason}. It can be called again once a process offers it: in a notebook, run its cell.",
        tool=tool,
    )

"""The connections to all MCP servers that are used now: those of the project, and those of definitions while needed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from workbench.process import ProcessRef
from workbench.rules.secrets.mask import Mask
from workbench.upstream.connection import Connect, Upstream, UpstreamLimits
from workbench.upstream.offers import ServerToolOffer
from workbench.upstream.program_transport import LogTail
from workbench.upstream.servers_file import ServersFile

SHOWN_LINE = 300
_ERROR = re.compile(r"(?:Uncaught )?[\w.]*(?:Error|Exception)\b")
"""The line of a crash that says why: the last one in Python; in Node, a stack and a version follow."""
_CRASH_END = re.compile(r"Node\.js v\d")


class Key(NamedTuple):
    """Identifies a server.

    Args:
        owner: the id of the definition that has it; empty for the project.
    """

    owner: str
    name: str


@dataclass(slots=True)
class Knowledge:
    """Facts about a server besides its connection.

    Args:
        tail: the end of its program's standard error.
        secrets: those that it was given at its last start.
        confined: whether its program runs confined; None for a server at a URL.
        explain: what its box may have refused, by lines that it wrote.
        process: its program, if it was started; it may have ended.
        shown: for each tool: its offer, its mask, and the masked offer, as last shown.
    """

    tail: LogTail = field(default_factory=LogTail)
    secrets: frozenset[str] = frozenset()
    confined: bool | None = None
    explain: Callable[[Iterable[str]], str] = lambda lines: ""
    process: ProcessRef | None = None
    shown: dict[str, tuple[ServerToolOffer, Mask, ServerToolOffer]] = field(default_factory=dict, repr=False)

    def without_secrets(self, offer: ServerToolOffer, mask: Mask) -> ServerToolOffer:
        """A tool without secrets; cached, because tools are listed often and seldom change."""
        entry = self.shown.get(offer.name)
        if entry is None or entry[0] is not offer or entry[1] is not mask:
            texts = {part: mask.data(getattr(offer, part)) for part in ("title", "description", "parameters", "result")}
            entry = self.shown[offer.name] = (offer, mask, replace(offer, **texts))
        return entry[2]

    def note_process(self, process: ProcessRef) -> None:
        """Note that its program was started."""
        self.process = process

    def reason(self, problem: str) -> str:
        """Why it cannot be used, with what it wrote to its standard error, and what its box may have refused."""
        lines = [line.strip() for line in self.tail.text.splitlines() if line.strip() and not _CRASH_END.match(line)]
        telling = next((line for line in reversed(lines) if _ERROR.match(line)), lines[-1] if lines else "")
        wrote = f"{problem}; the program wrote: {telling[:SHOWN_LINE]}" if telling else problem
        return "\n".join(filter(None, (wrote, self.explain(lines))))

    def redacted(self, text: str) -> str:
        """A text that the server wrote, with its secrets masked."""
        return Mask(self.secrets).text(text)


@dataclass(slots=True)
class _Running:
    upstream: Upstream
    fingerprint: str
    knowledge: Knowledge
    task: asyncio.Task[None]
    used_at: float


class Upstreams:
    """The connections of one open project. Everything happens on the loop that uses them.

    Args:
        file: names the servers of the project.
    """

    def __init__(self, file: ServersFile) -> None:
        self.file = file
        self._running: dict[Key, _Running] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._changes: set[Key] = set()
        self.is_open = False
        """Whether connections may be made: only while the servers of the project run here."""
        self.starting = asyncio.Lock()
        """Held while it is decided which servers run."""

    def start(
        self, key: Key, fingerprint: str, connect: Callable[[Knowledge], Connect], limits: UpstreamLimits
    ) -> Upstream:
        """Connect to a server, unless that is done already with the same configuration.

        Args:
            fingerprint: identifies the configuration.
            connect: returns the function that connects and notes facts about the server.
        """
        running = self._running.get(key)
        if running is not None and running.fingerprint == fingerprint:
            return running.upstream
        self.stop(key)
        knowledge = Knowledge()
        upstream = Upstream(key.name, connect(knowledge), lambda: self._changes.add(key), limits)
        task = asyncio.create_task(upstream.run(), name=f"MCP server {key.name}")
        self._running[key] = _Running(upstream, fingerprint, knowledge, task, _now())
        self._changes.add(key)
        return upstream

    def stop(self, key: Key) -> bool:
        """Disconnect from a server; False if there was no connection. A program may take some seconds to end."""
        running = self._running.pop(key, None)
        if running is None:
            return False
        running.task.cancel()
        self._ending.add(running.task)
        running.task.add_done_callback(self._ending.discard)
        self._changes.add(key)
        return True

    async def stopped(self) -> None:
        """Wait until the programs of the servers that were stopped have ended."""
        await asyncio.gather(*self._ending, return_exceptions=True)

    def use(self, key: Key) -> Upstream | None:
        """The connection to a server, which is then in use."""
        running = self._running.get(key)
        if running is None:
            return None
        running.used_at = _now()
        return running.upstream

    def get(self, key: Key) -> Upstream | None:
        """The connection to a server."""
        running = self._running.get(key)
        return running.upstream if running else None

    def fingerprint(self, key: Key) -> str:
        """Identifies the configuration of a server; empty if it does not run."""
        running = self._running.get(key)
        return running.fingerprint if running else ""

    def all(self, owner: str) -> Mapping[str, Upstream]:
        """The servers of an owner by their names."""
        return {key.name: running.upstream for key, running in self._running.items() if key.owner == owner}

    def knowledge(self, key: Key) -> Knowledge:
        """Facts about a server; empty if it does not run."""
        running = self._running.get(key)
        return running.knowledge if running else Knowledge()

    def programs(self) -> Iterator[tuple[Key, ProcessRef]]:
        """The programs of the servers that run as such."""
        for key, running in self._running.items():
            if running.knowledge.process is not None:
                yield key, running.knowledge.process

    @property
    def secrets(self) -> frozenset[str]:
        """The secrets that the servers were given."""
        return frozenset().union(*(running.knowledge.secrets for running in self._running.values()))

    def stop_idle(self, seconds: float) -> None:
        """Disconnect from the servers of definitions that were not used for a while."""
        oldest = _now() - seconds
        for key, running in list(self._running.items()):
            if key.owner and running.used_at < oldest and not running.upstream.is_busy:
                self.stop(key)

    def note_change(self, key: Key) -> None:
        """Note that a server has changed, whether or not there is a connection to it."""
        self._changes.add(key)

    def take_changes(self) -> set[Key]:
        """The servers whose configuration, state or tools have changed since this was called last."""
        changes, self._changes = self._changes, set()
        return changes

    def open(self) -> None:
        """Let connections be made from now on."""
        self.is_open = True

    async def close(self) -> None:
        """Disconnect from all servers, and wait until their programs have ended. No more connections are made."""
        self.is_open = False
        async with self.starting:
            for key in list(self._running):
                self.stop(key)
        await self.stopped()


def _now() -> float:
    return asyncio.get_running_loop().time()

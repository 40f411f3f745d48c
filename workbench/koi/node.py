"""The node of an open project while it takes part in a network: its identity, its address, and its tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import WorkbenchError
from workbench.koi.directory import PersonalityDirectory
from workbench.koi.identity import NodeIdentity
from workbench.koi.nodes import NodeProfile, NodeProvides, NodeType
from workbench.koi.received_calls import ReceivedCalls
from workbench.koi.requests import PeerClient

FAILED_SECONDS = 5.0

log = logging.getLogger(__name__)


class PeerTasks:
    """Tasks of a node: at most one of each kind for each peer, so that none waits for another peer.

    Args:
        on_end: called when a task may be started again.
        failed_seconds: the pause after a failure, before a task of the same kind and peer may start.
    """

    def __init__(self, on_end: Callable[[], None] = lambda: None, failed_seconds: float = FAILED_SECONDS) -> None:
        self._on_end = on_end
        self._failed_seconds = failed_seconds
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._is_closed = False

    def start(self, kind: str, peer: str, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Start a task, unless one of its kind runs for the peer, or has just failed. A failure is logged."""
        key = kind, peer
        if self._is_closed or key in self._running:
            return False
        self._running[key] = task = asyncio.create_task(work(), name=f"{kind} {peer}")
        task.add_done_callback(lambda _: self._note_end(key, task))
        return True

    async def close(self) -> None:
        """End all tasks, and start no more."""
        self._is_closed = True
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _note_end(self, key: tuple[str, str], task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            self._release(key)
            return
        log.error("%s failed", task.get_name(), exc_info=error)
        asyncio.get_running_loop().call_later(self._failed_seconds, self._release, key)

    def _release(self, key: tuple[str, str]) -> None:
        del self._running[key]
        self._on_end()


@dataclass(slots=True)
class Meeting:
    """The state of the search for the first contact. `retry_at`: on the loop's clock. `tried`: set after each try."""

    failures: int = 0
    retry_at: float = 0.0
    error: str | None = None
    tried: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class Presence:
    """This node's part in the network, while it takes part."""

    identity: NodeIdentity
    base_url: str
    """``http://host:port/koi-net``."""
    client: PeerClient
    tasks: PeerTasks = field(default_factory=PeerTasks)
    greeted: dict[str, None] = field(default_factory=dict)
    """The nodes that have introduced themselves, and are not answered yet; the latest at the end."""
    compared: dict[str, float] = field(default_factory=dict)
    """When each peer's state was compared with this node's; on the loop's clock."""
    asked: dict[str, float] = field(default_factory=dict)
    """When each peer was last asked for anything."""
    polled: dict[str, float] = field(default_factory=dict)
    """When each peer was polled."""
    hurried: dict[str, float] = field(default_factory=dict)
    """When each peer was last tried again because it had sent something."""
    answered: dict[str, set[int]] = field(default_factory=dict)
    """The outbox ids that each peer got when it last polled."""
    meeting: Meeting = field(default_factory=Meeting)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while work for peers is chosen, and while the node leaves."""
    types: list[str] = field(default_factory=list)
    """The types of RIDs that it provides."""
    began: int = 0
    """When it began to take part, or to do so alone, microseconds UTC. What is dated earlier may be older than what it
    or another node with its key said before."""
    forgotten: dict[str, int] = field(default_factory=dict)
    """When each peer was found to know nothing of this node, or introduced itself anew, microseconds UTC. It may have
    been told to forget what is dated earlier."""
    same_key: str | None = None
    """The address of another node that uses the same key."""

    def keep(self, peers: Collection[str]) -> None:
        """Drop what is noted about other nodes than these."""
        for notes in (self.compared, self.asked, self.polled, self.hurried, self.answered, self.forgotten):
            for peer in notes.keys() - peers:
                del notes[peer]

    def profile(self) -> NodeProfile:
        """What it tells others about itself."""
        return NodeProfile(
            base_url=self.base_url,
            node_type=NodeType.FULL,
            provides=NodeProvides(event=self.types, state=self.types),
            public_key=self.identity.public_key,
        )


@dataclass(slots=True)
class Node:
    """This project's node. Everything happens on the loop that opened the project.

    Args:
        presence: None while it takes no part.
        directory: the personalities that it knows, as the store has them.
        changed_elsewhere: ``name/version`` of those that another process has changed, until they are read again.
        has_mail: set when something was put into the outbox, or is to be done for a peer.
        problem: the error that keeps it from taking part.
        received_calls: recent calls by other nodes.
        publishing: held while this project's own profiles are compared with the published ones, and published.
    """

    presence: Presence | None = None
    directory: PersonalityDirectory = field(default_factory=PersonalityDirectory)
    changed_elsewhere: set[str] = field(default_factory=set)
    has_mail: asyncio.Event = field(default_factory=asyncio.Event)
    publishing: asyncio.Lock = field(default_factory=asyncio.Lock)
    problem: WorkbenchError | None = None
    received_calls: ReceivedCalls = field(default_factory=ReceivedCalls)

    def greeted(self, peer: str) -> None:
        """Note that a node has introduced itself and must be answered."""
        if self.presence is not None:
            self.presence.greeted.pop(peer, None)
            self.presence.greeted[peer] = None
            self.has_mail.set()

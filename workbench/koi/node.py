"""The node of an open project while it takes part in a network: its identity, and its address."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from workbench.errors import WorkbenchError
from workbench.koi.directory import PersonalityDirectory
from workbench.koi.identity import NodeIdentity
from workbench.koi.peer_tasks import PeerTasks
from workbench.koi.received_calls import ReceivedCalls
from workbench.koi.requests import PeerClient


@dataclass(slots=True)
class Meeting:
    """The state of the search for the first contact. `retry_at`: on the loop's clock."""

    failures: int = 0
    retry_at: float = 0.0
    error: str | None = None


@dataclass(slots=True)
class Presence:
    """This node's part in the network, while it takes part."""

    identity: NodeIdentity
    base_url: str
    """``http://host:port/koi-net``."""
    client: PeerClient
    tasks: PeerTasks = field(default_factory=PeerTasks)
    greeted: set[str] = field(default_factory=set)
    """The nodes that have introduced themselves, and are not answered yet."""
    compared: dict[str, float] = field(default_factory=dict)
    """When each peer's state was compared with this node's; on the loop's clock."""
    polled: dict[str, float] = field(default_factory=dict)
    """When each peer was polled."""
    hurried: dict[str, float] = field(default_factory=dict)
    """When each peer was last tried again because it had sent something."""
    answered: dict[str, set[int]] = field(default_factory=dict)
    """The outbox ids that each peer got when it last polled."""
    meeting: Meeting = field(default_factory=Meeting)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while work for peers is chosen, and while the node leaves."""


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
            self.presence.greeted.add(peer)
            self.has_mail.set()

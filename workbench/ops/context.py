"""The context that an operation gets: its caller, and the parts of Workbench that it may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from workbench.model import ServerInfo
from workbench.ops.caller import Caller
from workbench.ops.operation import Catalogue
from workbench.rules.tools.surroundings import Surroundings
from workbench.store.base import Reader, Store, Tx

if TYPE_CHECKING:
    from workbench.definition_files import Registry
    from workbench.functions.hosts import ToolHosts
    from workbench.git import Repository
    from workbench.git.access import Repositories
    from workbench.git.predictions import MergePredictions
    from workbench.koi.node import Node
    from workbench.ops.running_calls import RunningCalls
    from workbench.process import ProcessTable
    from workbench.providers.gateway import GatewayState
    from workbench.providers.running import RunningAnswers
    from workbench.state.machine import Machine
    from workbench.state.settings import Settings
    from workbench.store.feed import Feed
    from workbench.trust.allowlist import Allowlist
    from workbench.trust.known_secrets import KnownSecrets
    from workbench.upstream.connections import Upstreams


T = TypeVar("T")


@dataclass(slots=True)
class ProjectTurn:
    """Until when (microseconds UTC) it is this server's turn to perform what is done once in a project that several
    machines share."""

    until: int = 0


class Local(NamedTuple):
    """What belongs to this process, of the machine that it runs on: no other process of the project has it."""

    machine: Machine
    """The machine that it runs on, among those that share the project."""
    processes: ProcessTable
    turn: ProjectTurn
    repositories: Repositories
    predictions: MergePredictions
    server: ServerInfo | None
    answers: RunningAnswers
    gateway: GatewayState
    running_calls: RunningCalls
    """The calls of tools that this process runs."""
    upstreams: Upstreams
    tool_hosts: ToolHosts


class Ctx(NamedTuple):
    """The context of an operation: its caller, and the parts of Workbench that it may use."""

    caller: Caller
    catalogue: Catalogue
    """All operations, by name."""
    store: Store
    feed: Feed
    settings: Settings
    local: Local
    random: Callable[[], float]
    """Uniform in [0, 1). Passed in, like the time, so that tests control it."""
    allowlist: Allowlist
    definitions: Registry
    secrets: KnownSecrets
    """What no record shows."""
    node: Node
    """This project's node on a KOI network."""
    decision_handlers: Mapping[str, Callable[..., Awaitable[dict[str, Any]]]]
    """Run when an approval is decided, by the kind of the approval."""
    approval_refreshers: Sequence[Callable[[Ctx], Awaitable[None]]]
    """Bring pending approvals up to date before they are shown. They log their failures."""
    repairs: Sequence[Callable[[Ctx, Repository], Awaitable[None]]]
    """Finish or undo what a crash left unfinished in the repository; run before each exclusive use of it."""
    require_tools: Callable[[Ctx, Collection[str]], Awaitable[None]]
    """Refuses words for tools that mean none; see `catalogue.require_known`. Services below that of tools use it."""
    surroundings: Surroundings = Surroundings()
    """What the caller offers to a tool that it calls."""

    def of(self, caller: Caller) -> Ctx:
        """The same context for another caller."""
        return Ctx(caller, *self[1:])

    @property
    def has_turn(self) -> bool:
        """Whether this process performs what is done once in the project; on SQLite, its one server does."""
        return self.local.machine.is_alone or self.local.turn.until > self.store.now()

    def write(self, change: Callable[[Tx], T], *, durable: bool = True) -> Coroutine[Any, Any, T]:
        """Change the store, with the caller as the actor; see `Store.write`."""
        return self.store.write(change, actor=self.caller.name, durable=durable)

    def read(self, question: Callable[[Reader], T]) -> Coroutine[Any, Any, T]:
        """Read from the store; see `Store.read`."""
        return self.store.read(question)

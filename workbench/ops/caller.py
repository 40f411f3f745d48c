"""The caller of an operation, and the context that the operation gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from workbench.model import Access, Level, ServerInfo, Tool
from workbench.store.base import Reader, Store, Tx

if TYPE_CHECKING:
    from workbench.allowlist import Allowlist
    from workbench.git import Repository
    from workbench.git.access import Repositories
    from workbench.git.predictions import MergePredictions
    from workbench.process import ProcessTable
    from workbench.settings import Settings
    from workbench.store.feed import Feed


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of an operation, known from a credential, never from an argument.

    `agent` is the internal id (`agents.id`) and `name` the public one. An agent whose registration is pending is
    anonymous, but `agent` is set.
    """

    level: Level
    name: str
    agent: str | None = None
    persona: str | None = None
    worktree: str | None = None
    session: str | None = None
    team: str | None = None
    access: Access = Access.SELF_ONLY
    tool: Tool = Tool.WRITE
    """What an agent was granted, or what its connection selected if that is less."""
    barred: str | None = None
    """Why an admitted agent may do nothing, or less than it was granted, for now: ``GRANT_EXPIRED``,
    ``TOOL_DISABLED`` or ``NOT_ALLOWLISTED``."""
    rejection: str | None = None
    """Why its registration was rejected, empty if no reason was given; None if it was not rejected."""
    reads: bool = True
    """Whether the tool `read` is enabled."""
    active: bool = False
    """Whether its registration is active; if not, its next operation activates it."""
    commands_only: bool = False
    """Whether it can do only tasks that have a command."""
    supervised: bool = False
    """Whether a supervisor claims its tasks for it, and starts it anew for each."""
    address: str | None = None
    client: str | None = None
    """The client's address and program: shown in the panel and used for limits, never trusted."""
    display_name: str | None = field(default=None, compare=False)
    """An agent's name for people to read; it may change, and several agents may have the same."""
    token_hash: str | None = field(default=None, repr=False, compare=False)
    """The hash of the agent's token when this was read; a new token has another."""

    @property
    def narrowed(self) -> Caller:
        """The same caller, restricted to the tool `read`."""
        if self.level <= Level.READ:
            return self
        if not self.reads:
            return replace(self, level=Level.ANONYMOUS, tool=Tool.READ, barred="TOOL_DISABLED")
        return replace(self, level=Level.READ, tool=Tool.READ)

    @property
    def scope(self) -> dict[str, Any]:
        """Whose rows the caller sees, as parameters of queries: `everything`, `me`, `my_team`, `my_session`."""
        return {
            "everything": int(self.level is Level.OPERATOR),
            "me": self.agent,
            "my_team": self.team if self.access is not Access.SELF_ONLY else None,
            "my_session": self.session if self.access is Access.SESSION_LEVEL else None,
        }


OPERATOR = Caller(Level.OPERATOR, "operator", access=Access.SESSION_LEVEL)
ANONYMOUS = Caller(Level.ANONYMOUS, "anonymous")
SYSTEM = Caller(Level.OPERATOR, "system", access=Access.SESSION_LEVEL)
"""Workbench itself: the actor of changes that nobody requested."""


class Ctx(NamedTuple):
    """The context of an operation: its caller, and the parts of Workbench that it may use."""

    caller: Caller
    store: Store
    feed: Feed
    settings: Settings
    processes: ProcessTable
    repositories: Repositories
    predictions: MergePredictions
    server: ServerInfo | None
    random: Callable[[], float]
    """Uniform in [0, 1). Passed in, like the time, so that tests control it."""
    allowlist: Allowlist
    decision_handlers: Mapping[str, Callable[..., Awaitable[dict[str, Any]]]]
    """Run when an approval is decided, by the kind of the approval."""
    approval_refreshers: Sequence[Callable[[Ctx], Awaitable[None]]]
    """Bring pending approvals up to date before they are shown. They log their failures."""
    repairs: Sequence[Callable[[Ctx, Repository], Awaitable[None]]]
    """Finish or undo what a crash left unfinished in the repository; run before each exclusive use of it."""

    def of(self, caller: Caller) -> Ctx:
        """The same context for another caller."""
        return Ctx(caller, *self[1:])

    def write(self, change: Callable[[Tx], T]) -> Coroutine[Any, Any, T]:
        """Change the store, with the caller as the actor; see `Store.write`."""
        return self.store.write(change, actor=self.caller.name)

    def read(self, question: Callable[[Reader], T]) -> Coroutine[Any, Any, T]:
        """Read from the store; see `Store.read`."""
        return self.store.read(question)

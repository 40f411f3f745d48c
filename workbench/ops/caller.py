"""Who is asking, and what an operation is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
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
    """Who is asking. It comes from a credential, never from an argument.

    `agent` is the internal id (`agents.id`) and `name` the one seen outside; an agent whose
    registration is undecided is anonymous, but known.
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
    reads: bool = True
    """Whether the tool `read` is switched on."""
    active: bool = False
    """Whether its registration is active; else the next operation makes it so."""
    address: str | None = None
    client: str | None = None
    """Where the request came from, and with what program; for the desk and for limits, never for trust."""

    @property
    def narrowed(self) -> Caller:
        """The same with the tool `read` alone, if it has more."""
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
"""Workbench itself: what happens without anybody's asking."""


class Ctx(NamedTuple):
    """What an operation is given: who asks, and the parts of the house it may use."""

    caller: Caller
    store: Store
    feed: Feed
    settings: Settings
    processes: ProcessTable
    repositories: Repositories
    predictions: MergePredictions
    server: ServerInfo | None
    random: Callable[[], float]
    """Uniform in [0, 1): randomness is an argument, as time is."""
    allowlist: Allowlist
    decision_handlers: Mapping[str, Callable[..., Awaitable[dict[str, Any]]]]
    """Run when an approval is decided, by the kind of the approval."""
    repairs: Sequence[Callable[[Ctx, Repository], Awaitable[None]]]
    """Finish or undo what a crash left half done in the repository; run before each exclusive use of it."""

    def of(self, caller: Caller) -> Ctx:
        """The same, for another caller."""
        return Ctx(caller, *self[1:])

    def write(self, change: Callable[[Tx], T]) -> Coroutine[Any, Any, T]:
        """Change the store in the caller's name; see `Store.write`."""
        return self.store.write(change, actor=self.caller.name)

    def read(self, question: Callable[[Reader], T]) -> Coroutine[Any, Any, T]:
        """Ask the store; see `Store.read`."""
        return self.store.read(question)

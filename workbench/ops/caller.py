"""The caller of an operation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from workbench.model import Access, Capability, GrantedAccess, Level


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
    tool: GrantedAccess = GrantedAccess.WRITE
    """What an agent was granted, or what its connection selected if that is less."""
    barred: str | None = None
    """Why an admitted agent may do nothing, or less than it was granted, for now: ``GRANT_EXPIRED``,
    ``TOOL_DISABLED`` or ``NOT_ALLOWLISTED``."""
    rejection: str | None = None
    """Why its registration was rejected, empty if no reason was given; None if it was not rejected."""
    reads: bool = True
    """Whether the tool `read` is enabled."""
    capabilities: frozenset[Capability] = frozenset()
    """What it may do besides what its level allows."""
    definition: str | None = None
    """The id of its definition, if it has one."""
    tools: frozenset[str] = frozenset()
    """What of the tools in the catalogue it may call: names of servers and of tools, ``notebook``, or ``*``."""
    active: bool = False
    """Whether its registration is active; if not, its next operation activates it."""
    commands_only: bool = False
    """Whether it can do only tasks that have a command."""
    supervised: bool = False
    """Whether a supervisor claims its tasks for it, and starts it anew for each."""
    address: str | None = None
    client: str | None = None
    """The client's address and program: shown in the panel and used for limits, never trusted."""
    connection: tuple[tuple[str, int], tuple[str, int]] | None = field(default=None, repr=False, compare=False)
    """The addresses and ports of the client's end and of ours; None: the call comes from this process."""
    person: str | None = field(default=None, compare=False)
    """The person who acts as the operator, as the Jupyter server names them to the notebook's page; None: not known."""
    display_name: str | None = field(default=None, compare=False)
    """An agent's name for people to read; it may change, and several agents may have the same."""
    token_hash: str | None = field(default=None, repr=False, compare=False)
    """The hash of the token: the agent's when this was read, or that of its attempt; a new token has another."""
    machine: str | None = None
    """The machine that an anonymous caller has the token of: it may enlist workers of that machine."""
    attempt: tuple[int, int] | None = None
    """The task and the number of the attempt whose command this is; None for the agent itself."""

    def coming_from(self, other: Caller) -> Caller:
        """The same caller, at the client of another."""
        return replace(self, address=other.address, client=other.client, connection=other.connection)

    @property
    def narrowed(self) -> Caller:
        """The same caller, restricted to the tool `read`."""
        if self.level <= Level.READ:
            return self
        if not self.reads:
            return replace(self, level=Level.ANONYMOUS, tool=GrantedAccess.READ, barred="TOOL_DISABLED")
        kept = self.capabilities & {Capability.OWN_DEFINITION}
        return replace(self, level=Level.READ, tool=GrantedAccess.READ, capabilities=kept)

    @property
    def scope(self) -> dict[str, Any]:
        """Whose rows the caller sees, as parameters of queries: `everything`, `me`, `my_team`, `my_session`."""
        return {
            "everything": int(self.level is Level.OPERATOR),
            "me": self.agent,
            "my_team": self.team if self.access is not Access.SELF_ONLY else None,
            "my_session": self.session if self.access is Access.SESSION_LEVEL else None,
        }


_ALL = frozenset({Capability.DEFINITIONS, Capability.TOOLS, Capability.OWN_PERSONALITY})
OPERATOR = Caller(Level.OPERATOR, "operator", access=Access.SESSION_LEVEL, capabilities=_ALL)
ANONYMOUS = Caller(Level.ANONYMOUS, "anonymous")
SYSTEM = Caller(Level.OPERATOR, "system", access=Access.SESSION_LEVEL, capabilities=_ALL)
"""Workbench itself: the actor of changes that nobody requested."""

"""Authentication of agents: finds the caller by a token, or by id alone for agents that a migration imported, and tells
those that wait for an agent when its token becomes invalid.

This module only reads. It does not know the operator's token, and `ops` decides what a caller may do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cachetools import LRUCache, TTLCache

from workbench.confinement import abilities
from workbench.errors import Unauthenticated
from workbench.model import Access, Capability, GrantedAccess, Level, Registration, Role, SelfTools, Wire
from workbench.ops import Caller, Ctx, op
from workbench.rules import access
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Store
from workbench.store.queries import beside

SQL = beside(__file__)
CACHED = 10_000
STALE_SECONDS = 5.0
COMMANDS_ONLY = "commands_only"
"""The capability of an agent that only runs the commands of tasks."""
OWN_TRAITS = "update_traits"
"""The tool whose grant lets an agent change its own profile on the network; ``*`` does not include it."""
SUPERVISED = "supervised"
"""The capability of an agent whose program is started for one task at a time, which its supervisor claims."""
_SHARED = frozenset({"team", "session", "project", "agent_tool"})
"""Nouns of events that may change what any agent may do."""
_ALL = "*"
REASONS = {
    "agent.revoked": "REVOKED",
    "agent.deleted": "REVOKED",
    "agent.token_issued": "TOKEN_REPLACED",
    "agent.terminated": "TOKEN_ENDED",
    "agent.exited": "TOKEN_ENDED",
    "agent.survived": "TOKEN_ENDED",
    "agent.token_ended": "TOKEN_ENDED",  # that of one attempt's command
}
"""Events that invalidate a token, and the reason that each one gives."""


class CallerIdentity(Wire):
    """Who the caller is, as the server sees it.

    `worktree_path` is the directory to work in, and to change nothing outside of. `supervised`: its supervisor claims
    its tasks, one at a time.
    """

    agent_id: str
    level: str
    tool: GrantedAccess
    access_level: Access
    persona_id: str | None
    session_id: str | None
    team_id: str | None
    worktree: str | None
    worktree_path: str | None
    supervised: bool


class CallerCache:
    """Finds callers by token or id, and caches them until an event changes their agent.

    A change committed by this process takes effect before the commit is acknowledged. A change by another process, or
    one without an event, takes effect within `STALE_SECONDS`. Call all methods except `forget` in the loop's thread.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._agents: TTLCache[str, _Agent] = TTLCache(CACHED, STALE_SECONDS)
        self._by_token: LRUCache[str, str] = LRUCache(CACHED)
        self._changed: set[str] = set()
        self._under_way: dict[int, set[str]] = {}
        """For each read that is under way, the agents that were changed since it began."""

    def forget(self, events: Sequence[Row]) -> None:
        """Drop the cached agents that these events changed; callable from any thread.

        It keeps no event, because the queue of a process without callers would grow with every commit.
        """
        for event in events:
            noun, _, id_ = event["subject"].partition(":")
            if noun == "agent":
                self._changed.add(id_)
            elif noun in _SHARED:
                self._changed.add(_ALL)

    async def identify(self, token: str) -> Caller:
        """The caller an agent's token belongs to, or that of an attempt's command while the attempt is under way.

        Raises:
            Unauthenticated: ``INVALID_TOKEN``.
        """
        hashed = access.token_hash(token)
        agent = self._from_cache(self._by_token.get(hashed, ""))
        if agent is None or agent.token_hash != hashed:
            if (command := await self._command(hashed)) is not None:
                return command
            agent = await self._read(lambda tx: tx.one(SQL.by_token, token_hash=hashed))
            self._by_token[hashed] = agent.uid
        return agent.now(self._store.now())

    async def identify_by_id(self, agent_id: str) -> Caller:
        """The caller with an agent id, if a migration imported the agent and it has no token yet.

        Raises:
            Unauthenticated: ``INVALID_AGENT`` (no agent has the id), ``TOKEN_REQUIRED`` (this agent needs a token).
            Refused: ``REJECTED``.
        """

        def question(tx: Reader) -> Row:
            row = tx.one(SQL.by_name, agent_id=agent_id)
            if row is None:
                raise Unauthenticated("INVALID_AGENT", "Invalid agent_id or agent not found")
            if row["registration_status"] == Registration.REJECTED:
                raise access.rejected(row["rejection"])
            if not row["id_only"]:
                raise Unauthenticated("TOKEN_REQUIRED", "Send the token that register returned, as data.token.")
            return row

        return (await self._read(question)).now(self._store.now())

    async def current(self, uid: str) -> Caller:
        """The present caller for an agent (internal id): its grant or tool may change while it is connected.

        Raises:
            Unauthenticated: ``INVALID_TOKEN``.
        """
        agent = self._from_cache(uid) or await self._read(lambda tx: tx.one(SQL.as_caller, id=uid))
        return agent.now(self._store.now())

    async def renewed(self, caller: Caller) -> Caller:
        """An agent's caller with its present permissions; that of a command only while its attempt is under way.

        Raises:
            Unauthenticated: ``INVALID_TOKEN``.
        """
        assert caller.agent is not None
        if caller.attempt is None:
            return await self.current(caller.agent)
        command = await self._command(caller.token_hash)
        if command is None:
            raise Unauthenticated("INVALID_TOKEN", "The attempt that the token was for is gone.")
        return command

    async def _command(self, hashed: str | None) -> Caller | None:
        """The caller with the token of an attempt; None if the token is of none.

        Raises:
            Unauthenticated: ``INVALID_TOKEN``: the attempt has ended.
        """
        attempt = await self._store.read_inline(lambda tx: tx.one(SQL.by_attempt_token, token_hash=hashed))
        if attempt is None:
            return None
        if attempt["ended_at"] is not None:
            text = f"Attempt {attempt['attempt']} of task {attempt['task_id']} has ended, and its token with it."
            raise Unauthenticated("INVALID_TOKEN", f"{text} The next attempt gets a token of its own.")
        agent = await self.current(attempt["agent_id"])
        return replace(agent, token_hash=hashed, attempt=(attempt["task_id"], attempt["attempt"]))

    def _from_cache(self, uid: str) -> _Agent | None:
        self._drop_changed()
        try:
            return self._agents[uid]  # half as long as `get`, and done for every message
        except KeyError:
            return None

    def _drop_changed(self) -> None:
        while self._changed:
            changed = self._changed.pop()
            for since in self._under_way.values():
                since.add(changed)
            if changed == _ALL:
                self._agents.clear()
            else:
                self._agents.pop(changed, None)

    async def _read(self, question: Callable[[Reader], Row | None]) -> _Agent:
        since = set[str]()
        self._under_way[id(since)] = since
        try:
            row = await self._store.read_inline(question)
            self._drop_changed()
        finally:
            del self._under_way[id(since)]
        if row is None or row["registration_status"] == Registration.REVOKED:
            raise Unauthenticated("INVALID_TOKEN", "The token is unknown or was revoked. Register again.")
        if row["deleted_at"] is not None:
            text = "The agent of this token was deleted. The operator can restore it; its token then works again."
            raise Unauthenticated("INVALID_TOKEN", text)
        agent = _Agent(row["id"], row["token_hash"], _caller(row), row["expires_at"])
        if since.isdisjoint((agent.uid, _ALL)):
            self._agents[agent.uid] = agent
        return agent


@dataclass(frozen=True, slots=True)
class _Agent:
    """A cached agent, and its caller until the grant expires."""

    uid: str
    token_hash: str | None
    caller: Caller
    expires_at: int | None

    def now(self, now: int) -> Caller:
        """The caller at a time (microseconds UTC)."""
        if self.expires_at is None or now < self.expires_at:
            return self.caller
        return replace(self.caller, level=Level.ANONYMOUS, barred="GRANT_EXPIRED")


class Revocations:
    """The calls and connections that wait, by their agents. Use it on one loop.

    Noting that something waits costs next to nothing, as it is done for each call of a tool.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, dict[asyncio.Future[str], Caller]] = {}

    def note(self, event: Row) -> None:
        """Take an event of one of the kinds in `REASONS`."""
        reason = REASONS[event["kind"]]
        data = json.loads(event["data"]) if event["kind"] == "agent.token_ended" else None
        for end, caller in self._waiting.get(event["subject"].removeprefix("agent:"), {}).items():
            if not end.done() and (data is None or caller.attempt == (data["task_id"], data["attempt"])):
                end.set_result(reason)

    @contextmanager
    def awaited(self, caller: Caller) -> Iterator[asyncio.Future[str]]:
        """A future that gets the reason if the token of a caller's agent becomes invalid within the block."""
        end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if caller.agent is None:
            yield end
            return
        waiting = self._waiting.setdefault(caller.agent, {})
        waiting[end] = caller
        try:
            yield end
        finally:
            del waiting[end]
            if not waiting and self._waiting.get(caller.agent) is waiting:
                del self._waiting[caller.agent]


def _caller(row: Row) -> Caller:
    off = row["tool"] == GrantedAccess.WRITE and not row["may_write"]
    tool = GrantedAccess.READ if row["tool"] == GrantedAccess.READ or off else GrantedAccess.WRITE
    status = Registration(row["registration_status"])
    level = access.level_of(status, tool, Role(row["role"]))
    barred = "TOOL_DISABLED" if off else None
    if tool is GrantedAccess.READ and not row["may_read"]:
        barred, level = "TOOL_DISABLED", Level.ANONYMOUS
    capabilities = json.loads(row["capabilities"])
    return Caller(
        level,
        row["assigned_agent_id"],
        row["id"],
        row["persona_id"],
        row["assigned_worktree"],
        row["session_id"],
        row["team_id"],
        Access(row["access_level"]),
        tool,
        barred,
        rejection=(row["rejection"] or "") if status is Registration.REJECTED else None,
        reads=bool(row["may_read"]),
        active=status is Registration.ACTIVE,
        display_name=row["name"],
        token_hash=row["token_hash"],
        commands_only=bool(capabilities.get(COMMANDS_ONLY)),
        supervised=bool(capabilities.get(SUPERVISED)),
        capabilities=frozenset(_capabilities(row, level)),
        definition=row["definition_id"],
        tools=frozenset(json.loads(row["tools"])),
    )


def _capabilities(row: Row, level: Level) -> Iterator[Capability]:
    if row["may_define"] and level >= Level.PLANNER:
        yield Capability.DEFINITIONS
    if row["definition_id"] is not None and row["self_tools"] != SelfTools.OFF:
        yield Capability.OWN_DEFINITION
        if row["self_tools"] == SelfTools.WRITE and level >= Level.WORKER:
            yield Capability.CHANGE_OWN_DEFINITION
    if row["tools"] != "[]":
        yield Capability.TOOLS
    if OWN_TRAITS in json.loads(row["tools"]) and level >= Level.WORKER:
        yield Capability.OWN_PERSONALITY


async def identify(store: Store, token: str) -> Caller:
    """The caller an agent's token belongs to; see `CallerCache.identify`."""
    return await CallerCache(store).identify(token)


def _seen_worktree(settings: Settings, caller: Caller) -> Path:
    """A caller's worktree as the caller finds it: one in a box that has files of its own, at the project's path."""
    uses_boxes = settings.confinement != "off" and settings.confinement_namespaces == "auto"
    if caller.supervised and uses_boxes and abilities().namespaces:
        return settings.project
    return settings.worktree(caller.worktree or "")


@op(allow=Level.READ, reads=True)
async def whoami(ctx: Ctx) -> CallerIdentity:
    """Get the identity and permissions that the server has for you."""
    caller = ctx.caller
    return CallerIdentity(
        agent_id=caller.name,
        level=caller.level.name.lower(),
        tool=caller.tool,
        access_level=caller.access,
        persona_id=caller.persona,
        session_id=caller.session,
        team_id=caller.team,
        worktree=caller.worktree,
        worktree_path=str(_seen_worktree(ctx.settings, caller)) if caller.worktree else None,
        supervised=caller.supervised,
    )

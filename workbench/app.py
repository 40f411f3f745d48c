"""The composition root: one `Workbench` owns every piece of state of one open project."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any, Self

from cachetools import LRUCache, TTLCache

from workbench.confinement.starter import Starter
from workbench.definition_files import Registry
from workbench.errors import TooMany, Unauthenticated, Unavailable, WorkbenchError
from workbench.functions.hosts import ToolHosts
from workbench.git.access import Repositories
from workbench.git.predictions import MergePredictions
from workbench.koi.directory import PersonalityDirectory
from workbench.koi.node import Node
from workbench.model import SECOND, Capability, Level, ServerInfo
from workbench.ops import OPERATOR, SYSTEM, Caller, Ctx, authorise, collect, dispatch, functions_of
from workbench.ops.context import Local, ProjectTurn
from workbench.ops.duties import SPACING_SECONDS, Duties, Duty, DutyRole
from workbench.ops.running_calls import RunningCalls
from workbench.process import ProcessTable
from workbench.providers.gateway import GatewayState, KeyTurns
from workbench.providers.running import RunningAnswers
from workbench.rules import access
from workbench.rules.failures import FailureKind, account_name
from workbench.rules.models.upstream import ProviderKey
from workbench.rules.telemetry.received import Signal
from workbench.rules.tools.names import qualified
from workbench.rules.tools.surroundings import Surroundings
from workbench.services import SERVICES, holds, servers
from workbench.services.access import authentication, personas
from workbench.services.agents import presence
from workbench.services.agents.presence import Transport
from workbench.services.models import tokens as model_tokens
from workbench.services.models import transcripts
from workbench.services.models.transcripts import Exchange
from workbench.services.personalities import incoming_calls as trait_calls
from workbench.services.personalities import network as koi_network
from workbench.services.personalities.exchange import receiving
from workbench.services.processes import reattach, termination
from workbench.services.spawning import elsewhere, provider_keys
from workbench.services.spending import budgets, ledger
from workbench.services.spending.ledger import ModelSpending
from workbench.services.tasks import expiry as task_expiry
from workbench.services.telemetry import receiving as telemetry
from workbench.services.tools import calls as tool_calls
from workbench.services.tools import catalogue as tool_catalogue
from workbench.services.tools import refused_calls
from workbench.services.tools.tool import ToolInfo, ToolKind, ToolOutcome, ToolScope
from workbench.services.worktrees import kept_work
from workbench.state.machine import Machine, name_of
from workbench.state.root import OpenedState
from workbench.state.settings import Settings
from workbench.store.base import Store, Tx
from workbench.store.feed import Feed
from workbench.sweeps import leftovers
from workbench.trust import project_store, state_directory
from workbench.trust.allowlist import Allowlist
from workbench.trust.known_secrets import KEY_FILE, KnownSecrets
from workbench.upstream.connections import Upstreams
from workbench.upstream.servers_file import ServersFile

PRESENCE = 15 * SECOND
"""The least time between two records of an agent's presence."""
AGENTS_NOTED = 10_000
RESTART_SECONDS = 1.0
CODES_TOLD = 64
TELL_AGAIN_SECONDS = 60.0

log = logging.getLogger(__name__)


class Workbench:
    """An open project. Use `Workbench.open`; everything happens on the loop that opened it."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        services: Iterable[ModuleType],
        steady: Callable[[], int] | None = None,
    ) -> None:
        modules = (*services, leftovers)
        duties = Duties.of(modules)
        self.settings = settings
        self._state = OpenedState(settings.home)
        self.store = store
        self.feed = Feed(store, settings.feed_queue)
        self._callers = authentication.CallerCache(store)
        self._noted: LRUCache[str, int] = LRUCache(AGENTS_NOTED)
        self._told: TTLCache[str, str] = TTLCache(CODES_TOLD, TELL_AGAIN_SECONDS)
        store.on_visible(self._callers.forget)
        store.on_commit(self.feed.committed)
        self.feed.on_foreign(self._callers.forget)
        self.revocations = authentication.Revocations()
        self.feed.on_event(self.revocations.note, *authentication.REASONS)
        self.catalogue = collect(modules)
        self.operator_token = access.new_token("wbo")
        self._starter = Starter()
        self._ctx = Ctx(
            caller=SYSTEM,
            catalogue=self.catalogue,
            store=store,
            feed=self.feed,
            settings=settings,
            local=Local(
                machine=Machine(name_of(settings)),
                turn=ProjectTurn(),
                processes=ProcessTable(self._state.identity or ""),
                repositories=Repositories(settings.project, self._starter.started),
                predictions=MergePredictions(),
                server=None,
                answers=RunningAnswers(),
                gateway=GatewayState(),
                running_calls=RunningCalls(),
                upstreams=Upstreams(ServersFile(settings.tool_servers_file)),
                tool_hosts=ToolHosts(),
            ),
            random=random.random,
            allowlist=Allowlist(settings),
            definitions=Registry(settings.home, settings.definitions),
            secrets=KnownSecrets(settings.home / KEY_FILE),
            node=Node(),
            decision_handlers=_decision_handlers(modules),
            approval_refreshers=duties.all(DutyRole.REFRESHES_APPROVALS),
            repairs=duties.all(DutyRole.REPAIRS),
            require_tools=tool_catalogue.require_known,
        )
        self._ctx.secrets.add(settings.database_secrets)
        self.leases = task_expiry.LeaseWatch(store.now, steady)
        for listener, kinds in duties.events():
            self.feed.on_event(lambda event, listener=listener: listener(self._ctx, event), *kinds)  # type: ignore[misc]
        for note in duties.all(DutyRole.ON_FOREIGN):
            self.feed.on_foreign(lambda events, note=note: note(self._ctx, events))  # type: ignore[misc]
        self._prepare, self._recover = duties.all(DutyRole.PREPARES), duties.all(DutyRole.RECOVERS)
        lease_ends = Duty("ending leases", 0.25, self.leases.end_due, serving=False)
        self.duties = {duty.name: duty for duty in (lease_ends, *duties.periodic(settings))}
        """Periodic work. Each duty is supervised separately, so none waits for another."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings,
        *,
        services: Iterable[ModuleType] = SERVICES,
        clock: Callable[[], int] | None = None,
        steady: Callable[[], int] | None = None,
        create: bool = True,
    ) -> AsyncIterator[Workbench]:
        """Open the project's store, follow its feed and perform its duties until the block ends.

        Args:
            create: create the project if there is none. Otherwise its store is then an empty, temporary one, for
                operations that only read.
            clock: the time, microseconds UTC, in place of the store's own.
            steady: a monotonic clock, in microseconds, to detect changes of the store's time. With a `clock` there is
                none unless given, and `clock` itself counts as monotonic.

        Raises:
            Unavailable, Conflict: see `project_store.open_store`. Refused: see `state_directory.check`.
            BadInput: ``PERSONA_INVALID``.
        """
        with ExitStack() as stack:
            if create:
                await asyncio.to_thread(state_directory.create, settings)
                opener: Callable[..., Store] = partial(project_store.open_store, settings)
            else:
                opener = stack.enter_context(project_store.opener(settings))
            store = await _opened_store(partial(opener, clock))
            try:
                async with cls(settings, store, services, steady or _monotonic(clock))._at_work() as workbench:
                    yield workbench
            finally:
                await asyncio.to_thread(store.close)

    @asynccontextmanager
    async def _at_work(self) -> AsyncIterator[Self]:
        """Follow the feed and perform the duties until the block ends."""
        machine = await servers.join(self.store, self.settings)
        self._ctx = self._ctx._replace(local=self._ctx.local._replace(machine=machine))
        await personas.sync(self.store, self.settings)
        await self.feed.begin()
        for prepare in self._prepare:
            await prepare(self._ctx)
        side_tasks: dict[str, Callable[[], Awaitable[None]]] = {
            "the feed": self.feed.run,
            **{name: partial(self._repeat, duty) for name, duty in self.duties.items()},
        }
        background = [asyncio.create_task(self._supervise(name, work)) for name, work in side_tasks.items()]
        try:
            yield self
        finally:
            for task in background:
                task.cancel()
            for task in background:
                with suppress(asyncio.CancelledError):
                    await task
            await koi_network.closed(self._ctx)
            await self._ctx.local.repositories.settled()
            await self._ctx.local.answers.interrupt_all()
            await self._ctx.local.upstreams.close()
            await self._ctx.local.repositories.settled()
            await asyncio.to_thread(self._starter.close)

    async def dispatch(
        self,
        caller: Caller,
        name: str,
        arguments: Mapping[str, Any],
        *,
        decoded: bool = False,
        surroundings: Surroundings = Surroundings(),
    ) -> dict[str, Any]:
        """Run an operation for a caller, and record its agent's presence; see `workbench.ops.dispatch`."""
        self.require_unmoved()
        if caller.agent is not None and caller.level > Level.ANONYMOUS:
            await self._note_presence(caller, caller.agent, name)
        ctx = self._ctx.of(caller)._replace(surroundings=surroundings)
        await refused_calls.check(ctx, name, arguments)
        return await dispatch(self.catalogue, ctx, name, arguments, decoded=decoded)

    def require_unmoved(self) -> None:
        """Refuse to act if the project's state is no longer at its path.

        Raises:
            Unavailable: ``PROJECT_MOVED``.
        """
        self._state.require_unmoved()

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation as the operator."""
        return await self.dispatch(OPERATOR, name, arguments)

    async def tools(self, caller: Caller) -> list[ToolInfo]:
        """The tools, other than operations, that a caller may call and that can be called now, in a fixed order."""
        if Capability.TOOLS not in caller.capabilities or caller.level < Level.WORKER:
            return []
        offered = await tool_catalogue.offered(self._ctx.of(caller), ToolScope(caller))
        return [tool for tool in offered if tool.kind is not ToolKind.OPERATION and tool.can_be_called]

    async def call_tool(
        self, caller: Caller, name: str, arguments: Mapping[str, Any], surroundings: Surroundings
    ) -> ToolOutcome:
        """Call a tool for a caller, and record its agent's presence; see `workbench.services.tools.calls.call`.

        Raises:
            Refused, NotFound: as of the operation `call_tool`.
        """
        await refused_calls.require_may_call(self._ctx.of(caller), name, arguments)
        if caller.agent is not None:
            await self._note_presence(caller, caller.agent, refused_calls.CALL_TOOL)
        done = await tool_calls.call(self._ctx.of(caller), ToolScope(caller), name, arguments, surroundings)
        return done.outcome

    async def koi_request(self, path: str, raw: bytes) -> tuple[int, bytes]:
        """The status and the JSON for a request of another KOI node to ``/events/broadcast``, …; see `receiving`."""
        return await receiving.answer(self._ctx, path, raw)

    def known_personalities(self, caller: Caller) -> PersonalityDirectory:
        """The personalities that are known, for callers that may list them; with `koi_open_registry`, for everybody.

        Raises:
            Unauthenticated, Refused: as of the operation `list_personalities`.
        """
        if not self.settings.koi_open_registry:
            authorise(self.catalogue["list_personalities"], caller)
        return self._ctx.node.directory

    def koi_identity(self) -> dict[str, str]:
        """This project's KOI node, for those who know only its address; see `introduction`."""
        return koi_network.introduction(self._ctx)

    async def call_trait(self, caller: Caller, agent: str, trait: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Call a trait of an agent of this project for a caller; see `call_tool`.

        Raises:
            NotFound: ``UNKNOWN_TOOL``.
        """
        ctx, name = self._ctx.of(caller), qualified(agent, trait)
        await refused_calls.require_may_call(ctx, name, arguments)
        async with refused_calls.recorded(ctx, ToolScope(caller), name, arguments):
            trait_calls.require_own(ctx, agent, trait)
        return await self.call_tool(caller, name, arguments, Surroundings())

    async def answer_trait_call(
        self, agent: str, trait: str, raw: bytes, send: Callable[[bytes], Awaitable[None]] | None = None
    ) -> tuple[int, bytes]:
        """Answer a call of another node; see `workbench.services.personalities.incoming_calls.answer`."""
        return await trait_calls.answer(self._ctx, agent, trait, raw, send)

    async def identify(self, token: str) -> Caller:
        """The caller that a token belongs to.

        Raises:
            Unauthenticated: ``INVALID_TOKEN``.
        """
        if token.startswith("wbo_"):
            if access.same_token(token, self.operator_token):
                return OPERATOR
            raise Unauthenticated("INVALID_TOKEN", "This is not the operator token of the running server.")
        if token.startswith(f"{elsewhere.TOKEN}_"):
            return await elsewhere.identify(self.store, token)
        return self._if_allowed(await self._callers.identify(token))

    async def identify_for_models(self, token: str | None, provider: str) -> Caller:
        """The caller that a token for models belongs to: an attempt's command, which may ask this provider.

        Raises:
            Unauthenticated: ``INVALID_TOKEN``. Refused: ``PROVIDER_NOT_GRANTED``.
        """
        grant = await model_tokens.identify(self._ctx, token, provider)
        agent = await self._callers.current(grant.agent)
        return replace(agent, attempt=(grant.task_id, grant.attempt), token_hash=access.token_hash(token or ""))

    async def provider_key(self, caller: Caller, provider: str) -> ProviderKey:
        """The person's key that answers for an attempt's request.

        Raises:
            Unavailable: ``KEY_GONE``, or why it cannot be read.
        """
        assert caller.agent is not None
        key = (await provider_keys.of_agent(self._ctx, caller.agent)).get(provider)
        if key is None:
            text = f"The key of {provider} was taken away since the attempt began. `workbench keys add {provider}`."
            raise Unavailable("KEY_GONE", text)
        return key

    def turns_of(self, key: ProviderKey) -> KeyTurns:
        """The turns of the requests with a key, of all agents together."""
        account = account_name(key.provider, key.value)

        async def limit() -> int | None:
            return await self.store.read_inline(lambda tx: holds.limit(tx, account))

        return self.gateway.turns.setdefault(account, KeyTurns(limit, self.store.now))

    async def require_budget(self, caller: Caller, model: str | None) -> None:
        """Refuse a request of an attempt whose budget is used up, or cannot be kept.

        Raises:
            Refused: ``BUDGET_EXCEEDED``, ``PRICE_UNKNOWN``.
        """
        assert caller.attempt is not None
        task_id, is_priced = caller.attempt[0], await ledger.is_priced(self._ctx, model)
        await self.store.read_inline(lambda tx: budgets.require(tx, task_id, caller.agent, is_priced=is_priced))

    async def book(self, caller: Caller, spent: ModelSpending) -> None:
        """Book a request that an attempt's command has made; see `ledger.book`."""
        task_id, attempt = caller.attempt or (None, None)
        whole = replace(spent, agent=caller.agent, task_id=task_id, attempt=attempt)
        await _noted(f"a request to {spent.provider}", ledger.book(self._ctx, whole))

    async def hold_account(self, key: ProviderKey, status: int, seconds: float) -> None:
        """Have nothing ask a provider with a key, nor claim tasks for it, while the key's limit lasts."""
        kind = FailureKind.LIMIT if status == TooMany.status else FailureKind.OVERLOADED
        scope, reason = f"account:{account_name(key.provider, key.value)}", f"{key.provider} answered with {status}."
        until = self.store.now() + int(seconds * SECOND)
        held = self.store.write(lambda tx: holds.hold(tx, self.settings, scope, kind, reason, until))
        await _noted(f"a limit of {key.provider}", held)

    async def transcribe(self, caller: Caller, exchange: Exchange) -> None:
        """Record what an attempt's command and a model said; see `transcripts.record`."""
        if caller.attempt is not None and self.settings.max_transcript_bytes:
            await _noted("a transcript", transcripts.record(self._ctx, *caller.attempt, exchange))

    def require_agent(self, caller: Caller) -> None:
        """Refuse a caller that may report nothing about itself.

        Raises:
            Unauthenticated, Refused: as of the operation `report_usage`.
        """
        authorise(self.catalogue["report_usage"], caller)

    async def receive_telemetry(self, caller: Caller, signal: Signal, raw: bytes, form: str, coding: str) -> None:
        """Take what an agent's program tells of itself by OTLP; see `telemetry.receiving.receive`."""
        await telemetry.receive(self._ctx.of(caller), signal, raw, form, coding)

    @property
    def gateway(self) -> GatewayState:
        """The memory of the model gateway."""
        return self._ctx.local.gateway

    def masked(self, value: Any, *more: str) -> Any:
        """A JSON value without the secrets that this process knows, and without others."""
        return self._ctx.secrets.also(more).masked(value)

    async def identify_by_id(self, agent_id: str) -> Caller:
        """The caller for an agent that a migration imported, by id alone; see `CallerCache.identify_by_id`."""
        return self._if_allowed(await self._callers.identify_by_id(agent_id))

    async def _note_presence(self, caller: Caller, agent_uid: str, name: str) -> None:
        """Make an agent active when it calls an operation that needs admission, at most every `PRESENCE`."""
        now, wanted = self.store.now(), self.catalogue.get(name)
        if wanted is None or wanted.allow is Level.ANONYMOUS:
            return
        if now - self._noted.get(agent_uid, -PRESENCE) < PRESENCE and await self._is_active(caller, agent_uid):
            return
        self._noted[agent_uid] = now
        try:
            await self.store.write(lambda tx: presence.touch_presence(tx, agent_uid), actor=caller.name)
        except Unavailable:
            log.warning("the presence of %s could not be recorded", caller.name, exc_info=True)

    async def _is_active(self, caller: Caller, agent_uid: str) -> bool:
        """Whether an agent is active now, though it may have become so since the caller was read."""
        if caller.active:
            return True
        try:
            return (await self._callers.current(agent_uid)).active
        except Unauthenticated:
            return False

    @asynccontextmanager
    async def connected(self, caller: Caller, transport: Transport, client_id: str) -> AsyncIterator[None]:
        """Record an agent as connected, and therefore active, within the block."""
        server = self.server.nonce if self.server else ""
        opening = asyncio.create_task(
            self.store.write(lambda tx: presence.opened(tx, caller, transport, client_id, server), actor=caller.name)
        )
        try:
            # A cancelled wait does not undo the commit, so what was opened is closed below.
            await asyncio.shield(opening)
            yield
        finally:
            opened = await opening
            await self.store.write(lambda tx: presence.closed(tx, opened), actor=caller.name)

    async def renewed(self, caller: Caller) -> Caller:
        """A caller with its present permissions, and the same address and client; see `CallerCache.renewed`."""
        if caller.agent is None:
            return caller
        return (await self.current(caller)).coming_from(caller)

    async def current(self, caller: Caller) -> Caller:
        """The present caller for an agent's; the same object as long as nothing changes.

        Raises:
            Unauthenticated: ``INVALID_TOKEN``.
        """
        return self._if_allowed(await self._callers.renewed(caller))

    async def allowed(self, agent_id: str) -> bool:
        """Whether the allowlist lets the agent with this id act.

        Raises:
            Unavailable: ``ALLOWLIST_UNREADABLE``.
        """
        return self._ctx.allowlist.allows(agent_id)

    def _if_allowed(self, caller: Caller) -> Caller:
        if caller.agent is None or caller.level is Level.ANONYMOUS or self._ctx.allowlist.allows(caller.name):
            return caller
        return replace(caller, level=Level.ANONYMOUS, barred="NOT_ALLOWLISTED")

    async def serving(self, server: ServerInfo | None, *, end_workers: bool = True) -> None:
        """Set the running servers, after cleaning up what a crash left; None: they have stopped.

        Args:
            end_workers: whether the workers that an earlier server left are ended, or taken back.
        """
        if server is not None:
            await asyncio.to_thread(self.store.open_readers)
            await reattach.recover(self._ctx, end_workers=end_workers)
            for recover in self._recover:
                await recover(self._ctx)
            self._ctx.local.turn.until = await self.store.write(lambda tx: self._begin(tx, server))
        elif (ended := self.server) is not None:
            machine, nonce = self._ctx.local.machine, ended.nonce
            self._ctx.local.turn.until = 0
            await _noted("the end of the server", self.store.write(lambda tx: servers.end(tx, machine, nonce)))
        self._ctx = self._ctx._replace(local=self._ctx.local._replace(server=server))
        if server is not None:
            self._ctx.local.upstreams.open()
            await koi_network.opened(self._ctx)
            self.feed.wake()
        else:
            await koi_network.closed(self._ctx)
            await self._ctx.local.answers.interrupt_all()
            await self._ctx.local.upstreams.close()

    def _begin(self, tx: Tx, server: ServerInfo) -> int:
        until = servers.begin(tx, self._ctx, server)
        presence.close_left_open(tx, servers.left_connected(tx, self.settings))
        return until

    def interrupt_calls(self) -> None:
        """End the calls of tools that run here, because the servers stop."""
        self._ctx.local.running_calls.interrupt()

    @property
    def server(self) -> ServerInfo | None:
        """The server of this process, while it runs."""
        return self._ctx.local.server

    async def end_workers(self) -> None:
        """End every process that was spawned from this project."""
        await termination.end_all(self._ctx, "the workbench was stopped")
        await kept_work.put_away_ended(self._ctx, briefly=True)

    def release_workers(self) -> None:
        """Let the spawned processes go on without this one."""
        self._ctx.local.processes.release()

    async def _supervise(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Keep a side task running: a failure is logged, and the task is restarted.

        What is wrong with the store (a full disk, a database that is away) every task meets: it is logged once a
        minute.
        """
        while True:
            try:
                await work()
            except Exception as error:
                if not (isinstance(error, Unavailable) and error.is_of_store):
                    log.exception("%s failed; restarting it", name)
                elif error.code not in self._told:
                    self._told[error.code] = name
                    log.warning("%s failed, and is tried again: %s: %s", name, error.code, error.message)
                await asyncio.sleep(RESTART_SECONDS)

    async def _repeat(self, duty: Duty) -> None:
        if duty.wakes:
            with self.feed.changed(is_inner=True) as change:

                async def wait(pause: float) -> None:
                    await asyncio.sleep(SPACING_SECONDS)
                    await change.next(max(pause - SPACING_SECONDS, 0.0))

                await self._repeat_after(wait, duty, 0.0)
        else:
            await self._repeat_after(asyncio.sleep, duty, duty.seconds)

    def _may_perform(self, duty: Duty) -> bool:
        return not self._state.has_moved() and (self._ctx.has_turn or not duty.once)

    async def _repeat_after(self, wait: Callable[[float], Awaitable[None]], duty: Duty, pause: float) -> None:
        """Perform a duty after each wait for a pause."""
        while True:
            await wait(pause)
            began = time.monotonic()
            again = None
            if (self.server is not None or not duty.serving) and self._may_perform(duty):
                again = await duty.perform(self._ctx)
            pause = duty.pause(time.monotonic() - began, again)


async def _opened_store(opener: Callable[[], Store]) -> Store:
    """Open the store in a thread; if the caller is cancelled meanwhile, close it again."""
    opening = asyncio.create_task(asyncio.to_thread(opener))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        with suppress(WorkbenchError):
            await asyncio.to_thread((await opening).close)
        raise


def _monotonic(clock: Callable[[], int] | None) -> Callable[[], int] | None:
    """A monotonic clock, in microseconds, beside the store's own, which can be set; none beside another clock."""
    return (lambda: time.monotonic_ns() // 1_000) if clock is None else None


async def _noted(what: str, work: Awaitable[object]) -> None:
    """Await what a request leaves in the store. That this fails is logged: the request itself has not failed."""
    try:
        await work
    except WorkbenchError as error:
        log.error("%s could not be recorded: %s: %s", what, error.code, error.message)
    except Exception:
        log.exception("%s could not be recorded", what)


def _decision_handlers(modules: Iterable[ModuleType]) -> dict[str, Any]:
    return {fn.approval_kind: fn for fn in functions_of(modules) if hasattr(fn, "approval_kind")}

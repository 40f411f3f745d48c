"""The connection to one MCP server: opened, watched, and reopened when it is lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from workbench.client.retry import backoff
from workbench.errors import WorkbenchError, first_within
from workbench.rules.reasons import reason
from workbench.rules.tools.content import note
from workbench.rules.tools.surroundings import ProgressReceiver
from workbench.upstream import errors, reading
from workbench.upstream.call import Ask, ServerQuestion, UpstreamCall, current, whose
from workbench.upstream.offers import Offers, list_offers

if TYPE_CHECKING:
    from mcp.client import Client, ClientRequestContext
    from mcp.client.session import ElicitationFnT, MessageHandlerFnT
    from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, ErrorData

STEADY_SECONDS = 60.0
"""A server that ran longer is restarted at once; others after ever longer pauses."""
LIST_SECONDS = 1.0
"""The least time between two lists of a server's tools."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """Handlers for messages that a server sends unasked.

    Args:
        note: takes notifications, and errors of the transport.
        elicit: answers the server's questions to the person.
        ended: called when the connection has ended.
        answered: called with the status and the media type of each answer of HTTP.
        era: ``auto``: the newest version of the protocol that both know; ``legacy``: one with a handshake.
    """

    note: MessageHandlerFnT
    elicit: ElicitationFnT
    ended: Callable[[], None]
    era: str = "auto"
    answered: Callable[[int, str], None] = lambda status, kind: None


Connect = Callable[[Handlers], AbstractAsyncContextManager["Client"]]
"""A client of the server, connected."""

log = logging.getLogger(__name__)


class ServerState(StrEnum):
    """The state of a server: it is being started, answers, does not answer, or was stopped."""

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class UpstreamLimits:
    """Times in seconds, and the largest answer in bytes.

    Args:
        start: for the start, and for a list.
        answer: for a call, or from one report of its progress to the next.
        check: between two checks of a silent server.
    """

    start: float = 10.0
    answer: float = 60.0
    check: float = 15.0
    largest: int = 10 << 20


class Upstream:
    """One MCP server, and its tools as last listed, also while it is down.

    Args:
        name: for errors and the log.
        connect: connects to it.
        changed: called when its state or its tools have changed.
    """

    def __init__(
        self, name: str, connect: Connect, changed: Callable[[], None], limits: UpstreamLimits = UpstreamLimits()
    ) -> None:
        self.name = name
        self._connect = connect
        self._changed = changed
        self._limits = limits
        self._client: Client | None = None
        self._news = asyncio.Event()
        self._settled = asyncio.Event()
        self._calls: set[UpstreamCall] = set()
        self._is_legacy = False
        self._odd_answer = ""
        """What was wrong with the last answer of HTTP."""
        self._lost = 0
        """The number of calls that failed because it ended."""
        self.state = ServerState.STARTING
        self.problem: str | None = None
        self.offers = Offers()
        self.about = ""
        """Its own name and version, as it gave them."""
        self.restarts = 0

    async def run(self) -> None:
        """Keep connected until this is cancelled. A server that fails is started again, after ever longer pauses."""
        pauses, clock = backoff(), asyncio.get_running_loop().time
        try:
            while True:
                started_at = clock()
                try:
                    await asyncio.create_task(self._connect_once())  # as anyio cancels its task for its own ends
                except Exception as error:  # whatever a server does to its client: others go on
                    # Some older servers do not answer a question that they do not know.
                    self._is_legacy = isinstance(error, TimeoutError) and not self._is_legacy
                    self._set_state(ServerState.FAILED, self._reason(error))
                _require_not_cancelled()
                if clock() - started_at > STEADY_SECONDS:
                    pauses = backoff()
                await asyncio.sleep(next(pauses))
                self.restarts += 1
        finally:
            self._set_state(ServerState.STOPPED, None)

    async def _connect_once(self) -> None:
        async with self._open() as client:
            await self._watch(client)

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way."""
        return bool(self._calls)

    async def settled(self) -> None:
        """Wait until a start that is under way has succeeded or failed."""
        await self._settled.wait()

    async def call(
        self, tool: str, arguments: dict[str, Any], progress: ProgressReceiver | None = None, ask: Ask | None = None
    ) -> CallToolResult:
        """Call a tool. Cancelling this cancels the tool.

        Raises:
            Unavailable: ``TOOL_SERVER_DOWN``: it does not answer, or ended before it did; ``TOOL_TIMEOUT``;
                ``TOOL_RESULT_TOO_LARGE``; ``TOOL_RESULT_INVALID``; ``TOOL_SERVER_ERROR``.
        """
        from mcp.shared.exceptions import MCPError
        from mcp.types import TextContent
        from pydantic import ValidationError

        if self._client is None:
            raise errors.down(self.name, self.problem or f"it is {self.state}")
        call = UpstreamCall(self._limits.answer, progress, ask)
        self._calls.add(call)
        try:
            async with call.under_way():
                if tool in self.offers.reading:
                    result = await reading.call(self._client, tool, arguments)
                else:
                    result = await self._call_tool(
                        self._client, call, tool, arguments, has_progress=progress is not None
                    )
            result.content.extend(TextContent.model_validate(note(f"[{said}]")) for said in call.unanswered)
            return result
        except TimeoutError:
            raise errors.timeout(self.name, self._limits.answer) from None
        except MCPError as error:
            raise await self._code_error(error) from None
        except (ValidationError, RuntimeError) as error:
            raise errors.invalid_answer(self.name, _first_line(error)) from None
        finally:
            self._calls.discard(call)

    async def _call_tool(
        self, client: Client, call: UpstreamCall, tool: str, arguments: dict[str, Any], *, has_progress: bool
    ) -> CallToolResult:
        """Call a tool; once more after the person has been where the server says that she has to go first."""
        from mcp.shared.exceptions import MCPError

        progress = call.note_progress if has_progress else None
        try:
            return await client.call_tool(tool, arguments, progress_callback=progress)
        except MCPError as error:
            visits = errors.visits(error)
            if not visits:
                raise
            for visit in visits:
                if (await call.ask(visit)).action != "accept":
                    raise
            return await client.call_tool(tool, arguments, progress_callback=progress)

    async def _code_error(self, error: Any) -> WorkbenchError:
        if errors.is_too_large(error):
            return errors.too_large(self.name, self._limits.largest)
        if errors.is_lost(error) or (errors.may_be_lost(error) and not await self._is_usable()):
            self._lost += 1
            if self.state is ServerState.READY:  # also while the connection is being closed
                self._set_state(ServerState.FAILED, "it ended before it had answered")
                self._news.set()
            return errors.down(self.name, "it ended before it had answered")
        return errors.refused(self.name, error, self._odd_answer)

    async def _is_usable(self) -> bool:
        """Whether the server still answers on the connection."""
        try:
            async with asyncio.timeout(self._limits.start):
                return self._client is not None and bool(await self._client.list_tools(cache_mode="refresh"))
        except Exception:  # however it fails
            return False

    # Connecting.

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Client]:
        async with AsyncExitStack() as stack:
            self._set_state(ServerState.STARTING, self.problem)
            await asyncio.to_thread(import_module, "mcp.client")  # which takes long the first time
            era = "legacy" if self._is_legacy else "auto"
            self._odd_answer = ""
            handlers = Handlers(self._note, self._elicit, self._news.set, era, self._note_answer)
            async with asyncio.timeout(self._limits.start):
                client = await stack.enter_async_context(self._connect(handlers))
                offers = await list_offers(client, self.name)
            _require_not_cancelled()
            self._client, self.offers = client, offers
            self.about = _about(client)
            self._set_state(ServerState.READY, None)
            try:
                yield client
            finally:
                self._client = None

    # Watching.

    async def _watch(self, client: Client) -> None:
        """List the tools again whenever the server reports a change; ends when the server is lost."""
        listener = asyncio.create_task(self._listen(client))
        try:
            while True:
                changed = await self._wait_for_change()
                if not changed and self._calls:  # it may do one thing at a time; its calls have deadlines of their own
                    continue
                was_busy, lost = self.is_busy, self._lost
                try:
                    async with asyncio.timeout(self._limits.start):
                        offers = await list_offers(client, self.name)
                except TimeoutError:
                    if not was_busy:
                        raise
                    self._news.set()  # it is asked again
                    continue
                _require_not_cancelled()
                if offers != self.offers:
                    self.offers = offers
                    self._changed()
                if lost == self._lost:
                    self._set_state(ServerState.READY, None)  # if a call was lost before, it was that call alone
                await asyncio.sleep(LIST_SECONDS)
        finally:
            listener.cancel()

    async def _wait_for_change(self) -> bool:
        """Wait for a change; False if there is none until the next check."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.check):
                await self._news.wait()
        changed = self._news.is_set()
        self._news.clear()
        return changed

    async def _listen(self, client: Client) -> None:
        """Note the changes that a server of the newer protocol reports on a stream of their own."""
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
        from mcp.shared.exceptions import MCPError

        for pause in backoff():
            try:
                async with client.listen(tools_list_changed=True) as events:
                    self._news.set()  # what changed before is in no event
                    async for _ in events:
                        _require_not_cancelled()
                        self._news.set()
            except ListenNotSupportedError:
                return
            except (MCPError, SubscriptionLost, OSError):  # such as a server that has just died
                log.debug("%s does not report changes", self.name, exc_info=True)
            _require_not_cancelled()
            await asyncio.sleep(pause)

    def _note_answer(self, status: int, kind: str) -> None:
        self._odd_answer = errors.of_answer(status, kind)

    def _reason(self, error: BaseException) -> str:
        """Why the connection could not be made, or was lost."""
        return errors.explained(_reason(error, self._limits.start), self._odd_answer)

    async def _note(self, message: Any) -> None:
        from mcp.types import (
            PromptListChangedNotification,
            ResourceListChangedNotification,
            ToolListChangedNotification,
        )

        changes = (ToolListChangedNotification, ResourceListChangedNotification, PromptListChangedNotification)
        if isinstance(message, changes):
            self._news.set()

    async def _elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Pass a question of the server on to the person behind its call."""
        from mcp.types import ElicitRequestFormParams, ElicitResult

        message = errors.quoted(params.message)
        if isinstance(params, ElicitRequestFormParams):
            question = ServerQuestion(message, params.requested_schema)
        else:
            question = ServerQuestion(message, {}, params.url)
        call = self._find_call()
        reply = await call.ask(question) if call is not None else whose(question, self._calls)
        if reply.unanswered:
            log.info("%s asked “%s”, which nobody has answered: %s", self.name, message, reply.unanswered)
        content = dict(reply.content or {}) if reply.action == "accept" and not question.url else None
        return ElicitResult(action=reply.action, content=content)

    def _find_call(self) -> UpstreamCall | None:
        """The call that a question belongs to; None if several are under way and it cannot be told, because another
        caller's person must not answer."""
        if (call := current()) in self._calls:
            return call
        return next(iter(self._calls)) if len(self._calls) == 1 else None

    def _set_state(self, state: ServerState, problem: str | None) -> None:
        if state is ServerState.STARTING:
            self._settled.clear()
        else:
            self._settled.set()
        if (state, problem) != (self.state, self.problem):
            self.state, self.problem = state, problem
            log.info("%s is %s%s", self.name, state, f": {problem}" if problem else "")
            self._changed()


def _require_not_cancelled() -> None:
    """End a task that was cancelled: anyio drops a cancellation that comes at the same time as an answer."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _about(client: Client) -> str:
    about = client.server_info
    return errors.quoted(f"{about.name} {about.version}") if about else ""


def _reason(error: BaseException, start_seconds: float) -> str:
    from mcp.client.auth import OAuthFlowError
    from mcp.shared.exceptions import MCPError

    error = first_within(error)
    if isinstance(error, TimeoutError):
        return f"it did not answer within {start_seconds:g} s"
    if isinstance(error, WorkbenchError):
        return error.message.rstrip(".")
    if isinstance(error, OAuthFlowError):
        return "you have to sign in there again: `workbench tools servers sign-in`"
    if isinstance(error, MCPError) and errors.is_lost(error):
        return "the connection was closed"
    return errors.quoted(_first_line(error))


def _first_line(error: BaseException) -> str:
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        problem = error.errors(include_url=False, include_input=False)[0]
        return f"{error.title} is not as the protocol says: {'.'.join(map(str, problem['loc']))}: {reason(problem)}"
    return f"{type(error).__name__}: {error}".partition("\n")[0]

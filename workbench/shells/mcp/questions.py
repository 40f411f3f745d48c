"""Questions of tools to the client that called them (elicitation), in both eras of the protocol.

In sessions the server sends a request. Newer clients get the question as the answer to their call, and send the call
again with what the person answered; the tool waits meanwhile.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from workbench.errors import BadInput, Conflict
from workbench.ops import Caller
from workbench.rules.tools.surroundings import Surroundings
from workbench.shells.mcp.backend import Context, caller_of
from workbench.shells.mcp.progress import ToolReports

SECONDS_TO_ANSWER = 600.0
"""How long a tool waits for an answer."""
MOST_WAITING = 16
"""How many calls of one caller may wait for answers at once."""


def can_answer(ctx: Context) -> bool:
    """Whether a client can show its person a form. One that names no kind of question means forms."""
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def has_requests(ctx: Context) -> bool:
    """Whether the server can send the client requests."""
    return ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS


async def ask(ctx: Context, message: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the client of a session. One that does not answer, or cannot, has not chosen: ``cancel``."""
    try:
        async with asyncio.timeout(SECONDS_TO_ANSWER):
            answer = await ctx.session.elicit_form(message, dict(schema), ctx.request_id)
    except (TimeoutError, MCPError, ValidationError):
        return {"action": "cancel"}
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


def sealed() -> RequestStateBoundary:
    """Middleware that binds the state of a call that waits to its caller, tool and arguments."""
    policy = RequestStateSecurity.ephemeral(ttl=SECONDS_TO_ANSWER)
    policy.bind_principal = lambda ctx: principal(caller_of(ctx))
    return RequestStateBoundary(policy, default_audience="workbench")


def principal(caller: Caller) -> str:
    """To whom a call that waits belongs."""
    return caller.agent or caller.level.name


@dataclass(frozen=True, slots=True)
class _Question:
    message: str
    schema: Mapping[str, Any]
    answer: asyncio.Future[dict[str, Any]]

    @property
    def request(self) -> ElicitRequest:
        return ElicitRequest(params=ElicitRequestFormParams(message=self.message, requested_schema=dict(self.schema)))


class ToolExchange:
    """A call whose tool may ask while it runs; each `following` is the answer to one request of the client.

    Args:
        run: runs the tool, which may use what it is given.
        may_ask: whether the client can answer.
    """

    def __init__(self, run: Callable[[Surroundings], Awaitable[CallToolResult]], *, may_ask: bool) -> None:
        self.reports = ToolReports()
        """What the tool reports."""
        self._open: dict[str, _Question] = {}
        self._numbers = count(1)
        self._asked = asyncio.Event()
        asking = self._ask if may_ask else None
        self.work = asyncio.ensure_future(run(Surroundings(self.reports, asking, self.reports.follow)))
        """The tool's run."""

    async def following(self, answers: Mapping[str, Any] | None) -> CallToolResult | dict[str, ElicitRequest]:
        """The result, or the questions that are open after these answers. Cancelling this cancels the tool."""
        for name, answer in (answers or {}).items():
            if name in self._open and isinstance(answer, ElicitResult):
                self._open.pop(name).answer.set_result(answer.model_dump(mode="json", by_alias=True, exclude_none=True))
        if not self._open:
            self._asked.clear()
        asking = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait({self.work, asking}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            asking.cancel()
        if self.work.done():
            return await self.work
        return {name: question.request for name, question in self._open.items()}

    def cancel(self) -> None:
        """End the tool."""
        self.work.cancel()

    async def _ask(self, message: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        name = f"question_{next(self._numbers)}"
        question = _Question(message, schema, asyncio.get_running_loop().create_future())
        self._open[name] = question
        self._asked.set()
        try:
            return await question.answer
        finally:
            self._open.pop(name, None)


@dataclass(frozen=True, slots=True)
class _Waiting:
    exchange: ToolExchange
    principal: str
    expiry: asyncio.TimerHandle


class Exchanges:
    """The calls that wait for answers of clients without sessions."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}

    def resumed(self, params: CallToolRequestParams) -> ToolExchange | None:
        """The call that a request goes on with; None for a new call.

        Raises:
            BadInput: ``CALL_ENDED``.
        """
        if params.request_state is None:
            return None
        waiting = self._waiting.pop(params.request_state, None)
        if waiting is None:
            raise BadInput("CALL_ENDED", "The call that asked this has ended. Call the tool again, without its state.")
        waiting.expiry.cancel()
        return waiting.exchange

    def asked(
        self, ctx: Context, exchange: ToolExchange, questions: Mapping[str, ElicitRequest]
    ) -> InputRequiredResult:
        """The answer to a request whose tool asks; the client's next request goes on with it.

        Raises:
            Conflict: ``TOO_MANY_QUESTIONS``.
        """
        owner = principal(caller_of(ctx))
        if sum(waiting.principal == owner for waiting in self._waiting.values()) >= MOST_WAITING:
            exchange.cancel()
            raise Conflict(
                "TOO_MANY_QUESTIONS", f"At most {MOST_WAITING} calls may wait for answers. Answer one first."
            )
        state = secrets.token_urlsafe()
        expiry = asyncio.get_running_loop().call_later(SECONDS_TO_ANSWER, self._expire, state)
        self._waiting[state] = _Waiting(exchange, owner, expiry)
        return InputRequiredResult(input_requests=dict(questions), request_state=state)

    def _expire(self, state: str) -> None:
        self._waiting.pop(state).exchange.cancel()

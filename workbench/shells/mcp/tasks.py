"""Calls that take long as tasks: MCP's extension `io.modelcontextprotocol/tasks`, of the protocol without sessions.

A client that declares the extension gets, for a call that has not ended after some seconds, a task instead of the
result. The call goes on without its connection; `tasks/get` says where it stands and has the result, `tasks/update`
answers its questions, `tasks/cancel` ends it. A task is for the caller that began it alone, and ends with the server.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolResult,
    ElicitRequest,
    ElicitResult,
    InputResponses,
    RequestParams,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from workbench.errors import NotFound
from workbench.model import SECOND
from workbench.shells.mcp.backend import Context, caller_of, protocol_error
from workbench.shells.mcp.questions import SECONDS_TO_ANSWER, ToolExchange, principal

EXTENSION = "io.modelcontextprotocol/tasks"
MISSING_CAPABILITY = -32021
POLL_SECONDS = 1.0

Asked = dict[str, ElicitRequest]


class TaskParams(RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class UpdateTaskParams(TaskParams):
    """The parameters of `tasks/update`: answers by the names of their questions."""

    input_responses: InputResponses


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """After how long a call becomes a task, how long its result is kept, and how many one caller may have."""

    after_seconds: float
    kept_seconds: float
    most: int


class McpTask:
    """A call that goes on by itself. Times are in microseconds.

    Args:
        first: what the exchange does now; see `ToolExchange.following`.
    """

    def __init__(
        self, owner: str, exchange: ToolExchange, first: asyncio.Future[CallToolResult | Asked], now: Callable[[], int]
    ) -> None:
        self.id = secrets.token_urlsafe(24)
        self.owner = owner
        self.ended_at: int | None = None
        self._exchange = exchange
        self._now = now
        self._created_at = self._updated_at = now()
        self._asked: dict[str, ElicitRequest] = {}
        self._answers: asyncio.Queue[InputResponses] = asyncio.Queue()
        self.work = asyncio.create_task(self._follow(first))
        self.work.add_done_callback(self._end)

    def answer(self, answers: InputResponses) -> None:
        """Answer questions that are open; others are left out."""
        known = {name: answer for name, answer in answers.items() if self._asked.pop(name, None) is not None}
        if known:
            self._updated_at = self._now()
            self._answers.put_nowait(known)

    def cancel(self) -> None:
        """End the call, unless it has ended."""
        if not self.work.done():
            self._exchange.cancel()
            self.work.cancel()

    def as_wire(self, kept_seconds: float) -> dict[str, Any]:
        """The task, as the protocol has it."""
        kept = (self.ended_at or self._now()) - self._created_at + int(kept_seconds * SECOND)
        about = {
            "taskId": self.id,
            "createdAt": _iso(self._created_at),
            "lastUpdatedAt": _iso(self._updated_at),
            "ttlMs": kept // 1_000,
            "pollIntervalMs": int(POLL_SECONDS * 1_000),
        }
        if not self.work.done():
            if not self._asked:
                return about | {"status": "working", "statusMessage": self._exchange.reports.said}
            requests = {name: _dumped(request) for name, request in self._asked.items()}
            return about | {"status": "input_required", "inputRequests": requests}
        if self.work.cancelled():
            return about | {"status": "cancelled"}
        if isinstance(error := self.work.exception(), MCPError):
            return about | {"status": "failed", "statusMessage": error.error.message, "error": _dumped(error.error)}
        return about | {"status": "completed", "result": _dumped(self.work.result())}

    async def _follow(self, first: asyncio.Future[CallToolResult | Asked]) -> CallToolResult:
        result = await first
        while not isinstance(result, CallToolResult):
            self._asked, self._updated_at = result, self._now()
            result = await self._exchange.following(await self._answered())
        return result

    async def _answered(self) -> InputResponses:
        """The next answers; none if the call ends before. Who does not answer in time has not chosen."""
        answers = asyncio.ensure_future(self._answers.get())
        try:
            await asyncio.wait(
                {answers, self._exchange.work}, timeout=SECONDS_TO_ANSWER, return_when=asyncio.FIRST_COMPLETED
            )
            if answers.done():
                return answers.result()
            return {} if self._exchange.work.done() else {name: ElicitResult(action="cancel") for name in self._asked}
        finally:
            answers.cancel()

    def _end(self, work: asyncio.Task[CallToolResult]) -> None:
        self.ended_at = self._updated_at = self._now()
        if not work.cancelled():
            work.exception()  # it is told to whoever asks


class McpTasks:
    """The tasks of a server's clients.

    Args:
        now: the time, in microseconds.
    """

    def __init__(self, limits: TaskLimits, now: Callable[[], int]) -> None:
        self._limits = limits
        self._now = now
        self._tasks: dict[str, McpTask] = {}

    def serve(self, server: Server[Any]) -> None:
        """Offer the extension, and its requests."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", UpdateTaskParams, self._update)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    def serves(self, ctx: Context) -> bool:
        """Whether a request's client knows tasks."""
        capabilities = ctx.session.client_capabilities
        declared = capabilities.extensions if capabilities is not None else None
        return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and EXTENSION in (declared or {})

    async def close(self) -> None:
        """End all calls."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*(task.work for task in self._tasks.values()), return_exceptions=True)

    async def following(
        self, ctx: Context, exchange: ToolExchange, answers: InputResponses | None = None
    ) -> CallToolResult | Asked | McpTask:
        """What follows in a call: its result or questions; or a task, if that takes long and its client knows tasks."""
        if not self.serves(ctx):
            return await exchange.following(answers)
        first = asyncio.ensure_future(exchange.following(answers))
        try:
            await asyncio.wait({first}, timeout=self._limits.after_seconds)
        except asyncio.CancelledError:
            first.cancel()
            raise
        owner = principal(caller_of(ctx))
        if first.done() or not self._make_room(owner):
            return await first
        task = McpTask(owner, exchange, first, self._now)
        self._tasks[task.id] = task
        task.work.add_done_callback(lambda _: self._expire_later(task.id))
        return task

    def created(self, task: McpTask) -> dict[str, Any]:
        """The answer to a call that has become a task."""
        return {"resultType": "task", **task.as_wire(self._limits.kept_seconds)}

    def _make_room(self, owner: str) -> bool:
        """Whether a caller may have another task; the one that ended first goes for it."""
        tasks = [task for task in self._tasks.values() if task.owner == owner]
        if len(tasks) < self._limits.most:
            return True
        ended = [task for task in tasks if task.ended_at is not None]
        if ended:
            del self._tasks[min(ended, key=lambda task: task.ended_at or 0).id]
        return bool(ended)

    def _expire_later(self, task_id: str) -> None:
        asyncio.get_running_loop().call_later(self._limits.kept_seconds, self._tasks.pop, task_id, None)

    async def _get(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        task = self._of(ctx, params)
        return {"resultType": "complete", **task.as_wire(self._limits.kept_seconds)}

    async def _update(self, ctx: Context, params: UpdateTaskParams) -> dict[str, Any]:
        self._of(ctx, params).answer(params.input_responses)
        return {"resultType": "complete"}

    async def _cancel(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        self._of(ctx, params).cancel()
        return {"resultType": "complete"}

    def _of(self, ctx: Context, params: TaskParams) -> McpTask:
        """The caller's own task.

        Raises:
            MCPError: the client does not declare the extension, or there is no such task of this caller.
        """
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(METHOD_NOT_FOUND, "Method not found")
        if not self.serves(ctx):
            required: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            raise MCPError(MISSING_CAPABILITY, f"Declare the extension {EXTENSION}.", required)
        task = self._tasks.get(params.task_id)
        if task is None or task.owner != principal(caller_of(ctx)):
            text = "You have no such task: it is too old, or the server has started anew. Call the tool again."
            raise protocol_error(NotFound("MCP_TASK_NOT_FOUND", text), INVALID_PARAMS)
        return task


def _dumped(model: Any) -> dict[str, Any]:
    return dict(model.model_dump(mode="json", by_alias=True, exclude_none=True))


def _iso(micros: int) -> str:
    return datetime.fromtimestamp(micros / SECOND, UTC).isoformat()

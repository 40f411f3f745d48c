"""A process, such as a kernel or a stand-alone agent, as a host of tools: offers functions to the project's server, and
runs what is called.

The same whether this process serves the project or uses the server of another one, and when that changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from workbench.client.retry import backoff
from workbench.errors import NotFound, Unavailable, WorkbenchError
from workbench.functions import output
from workbench.functions.calls import failure, runnable
from workbench.functions.offered import OfferedFunction
from workbench.functions.progress import Report, reporting
from workbench.functions.runner import FunctionCancelled, FunctionRunner
from workbench.process import process_identity
from workbench.rules.secrets.mask import Mask
from workbench.rules.tools.masking import marked
from workbench.rules.tools.returned import ReturnedValue
from workbench.state.settings import Settings

WAIT_SECONDS = 20.0
"""How long the server may wait for a call before it answers that there is none."""
BATCH = 50
"""How many functions are offered in one request."""
END_SECONDS = 1.0
"""How long calls may take to end before the server is asked again."""
OVERHEAD = 4_096
"""Bytes of a request besides the result that it sends."""

log = logging.getLogger(__name__)


class HostCall(Protocol):
    """Runs an operation as the operator."""

    async def __call__(self, name: str, /, **arguments: Any) -> dict[str, Any]: ...


class ToolHost:
    """Offers functions and runs them. Everything happens on one loop, except `interrupt`.

    Args:
        call: runs operations of the project's server.
        name: of this process, for people.
        functions: by the names of their tools; they may change at any time.
    """

    def __init__(self, settings: Settings, call: HostCall, name: str, functions: Mapping[str, OfferedFunction]) -> None:
        self._settings = settings
        self._operation = call
        self._name = name
        self._functions = functions
        self._id = uuid4().hex
        self._runner = FunctionRunner(settings.max_tool_calls)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._reasons: dict[str, WorkbenchError] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> None:
        """Run what is called until cancelled; then interrupt what runs."""
        self._loop = asyncio.get_running_loop()
        pauses = backoff()
        try:
            while True:
                try:
                    await self._take()
                    pauses = backoff()
                except NotFound:  # a new server: the callers of the one before no longer wait
                    self._interrupt_all()
                    await self._offer_again()
                except WorkbenchError as error:
                    log.warning("calls of this process's tools could not be fetched: %s", error.message)
                    await asyncio.sleep(next(pauses))
        finally:
            for task in self._running.values():
                task.cancel()
            await asyncio.to_thread(self._runner.close)

    async def offer(self, functions: Sequence[OfferedFunction], *, add: bool) -> dict[str, str]:
        """Offer functions; the names among them that are not offered, because they are taken, with who has them.

        Args:
            add: besides those that are offered already.

        Raises:
            WorkbenchError: see the operation ``offer_tools``.
        """
        taken: dict[str, str] = {}
        for start in range(0, max(1, len(functions)), BATCH):
            tools = [one.offer() for one in functions[start : start + BATCH]]
            try:
                made = await self._call(
                    "offer_tools", name=self._name, tools=tools, add=add or start > 0, process=process_identity()
                )
            except NotFound:
                return await self.offer(list(self._functions.values()), add=False)
            taken |= made["taken"]
        return taken

    async def withdraw(self, names: Sequence[str] | None = None) -> None:
        """Withdraw functions; None: all of them, with what runs.

        Raises:
            WorkbenchError: see the operation ``withdraw_tools``.
        """
        await self._call("withdraw_tools", names=names)

    def interrupt(self) -> None:
        """In any thread: interrupt all functions that run; their callers get ``TOOL_INTERRUPTED``."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._interrupt_all)

    async def _take(self) -> None:
        found = await self._call("take_tool_calls", running=list(self._running), wait_seconds=WAIT_SECONDS)
        for call in found["calls"]:
            self._running[call["call_id"]] = asyncio.create_task(self._perform(**call))
        for call_id in found["cancelled"]:
            self._interrupt_one(call_id, "Its caller no longer waits.")
        if ending := [task for call_id, task in self._running.items() if call_id in found["cancelled"]]:
            await asyncio.wait(ending, timeout=END_SECONDS)  # the server repeats it until it has their answers

    async def _offer_again(self) -> None:
        try:
            taken = await self.offer(list(self._functions.values()), add=False)
        except WorkbenchError as error:
            log.warning("this process's tools could not be offered: %s", error.message)
        else:
            for name, owner in taken.items():
                log.warning("the tool %s is not offered: %s has one of this name", name, owner)

    def _interrupt_all(self) -> None:
        for call_id in self._running:
            self._interrupt_one(call_id, "The process that ran it was interrupted.")

    def _interrupt_one(self, call_id: str, reason: str) -> None:
        task = self._running.get(call_id)
        if task is not None and call_id not in self._reasons:
            self._reasons[call_id] = Unavailable("TOOL_INTERRUPTED", f"The tool was interrupted. {reason}")
            task.cancel()

    async def _perform(self, call_id: str, tool: str, arguments: dict[str, Any]) -> None:
        """Run a call and answer it. Cancelled without a reason, the whole host ends."""
        function = self._functions.get(tool)
        secrets = marked(arguments, function.tool.input_schema) if function else ()
        calls = output.CallLog(self._logs / f"{call_id}.log", Mask(secrets))
        try:
            with reporting(partial(self._report, call_id)):
                answer = await self._answer(tool, arguments, calls)
        except asyncio.CancelledError:
            if call_id not in self._reasons:
                raise
            answer = self._reasons[call_id]
        finally:
            calls.close()
        await self._finish(call_id, answer)
        self._reasons.pop(call_id, None)
        del self._running[call_id]

    async def _answer(
        self, tool: str, arguments: dict[str, Any], calls: output.CallLog
    ) -> ReturnedValue | WorkbenchError:
        function = self._functions.get(tool)
        if function is None:
            return NotFound("UNKNOWN_TOOL", f"{tool} is no longer offered by the process that had it.")
        fn = runnable(function.tool, arguments, calls, self._most_bytes, self._settings.max_tool_rows)
        try:
            with output.printing_to(calls):
                answer: ReturnedValue | WorkbenchError = await self._runner.run(
                    fn, {}, function.seconds or self._settings.tool_seconds
                )
                return answer
        except (
            Exception,
            FunctionCancelled,
        ) as error:  # also of an interrupt that came before or after the function's own code
            return failure(error, calls)

    async def _report(self, call_id: str, report: Report) -> None:
        done, total, message = report
        await self._call("report_tool_progress", call_id=call_id, progress=done, total=total, message=message)

    async def _finish(self, call_id: str, answer: ReturnedValue | WorkbenchError) -> None:
        """Send an answer until the server has it. A call stays among those that run until then, so that it is not
        given out again."""
        for pause in backoff():
            try:
                await self._call("finish_tool_call", call_id=call_id, **_sent(answer))
                return
            except NotFound:  # a new server, which knows no caller that waits for it
                return
            except Unavailable as error:
                log.warning("the result of a tool could not be sent yet: %s", error.message)
            except WorkbenchError as error:
                if isinstance(answer, WorkbenchError):
                    log.error("the failure of a tool could not be sent: %s", error.message)
                    return
                answer = error
            await asyncio.sleep(pause)

    async def _call(self, op: str, **arguments: Any) -> dict[str, Any]:
        return await self._operation(op, host_id=self._id, **arguments)

    @property
    def _most_bytes(self) -> int:
        """The largest result: it is sent in one request, if another process serves."""
        settings = self._settings
        return min(settings.max_tool_result_bytes, settings.max_frame_bytes - OVERHEAD)

    @property
    def _logs(self) -> Path:
        return self._settings.tool_logs


def _sent(answer: ReturnedValue | WorkbenchError) -> dict[str, Any]:
    if isinstance(answer, WorkbenchError):
        return {"error": answer.as_dict()}
    return {"answer": answer.model_dump(mode="json")}

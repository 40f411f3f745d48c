"""One call of a function: it ends with an answer or with a coded error, whatever the function does."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from workbench.errors import BadInput, Unavailable, WorkbenchError, first_within
from workbench.functions.output import CallLog
from workbench.functions.runner import FunctionCancelled
from workbench.rules.reasons import reason
from workbench.rules.tools.function import FunctionTool
from workbench.rules.tools.returned import ReturnedValue

MESSAGE_LIMIT = 2_000


def runnable(
    tool: FunctionTool, arguments: Mapping[str, Any], log: CallLog, limit: int, rows: int
) -> Callable[[], Any]:
    """A function, asynchronous if the tool's is, that calls it and returns an `Answer` or a `WorkbenchError`.

    Args:
        log: gets the traceback of an error.
        limit: the most bytes of a result; rows: see `Returned.answer`.
    """

    def call() -> ReturnedValue | WorkbenchError:
        try:
            return tool.returned.answer(tool.fn(**_bound(tool, arguments)), limit, rows)
        except BaseException as error:  # also an exit: it is the function's
            return failure(error, log)

    async def call_async() -> ReturnedValue | WorkbenchError:
        try:
            result = tool.fn(**_bound(tool, arguments))
            return tool.returned.answer(await result if inspect.isawaitable(result) else result, limit, rows)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            return failure(error, log)

    made: Callable[[], Any] = call_async if tool.is_async else call
    made.__name__ = tool.name
    return made


def _bound(tool: FunctionTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return tool.bound(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise BadInput("INVALID_ARGUMENTS", f"{tool.name}: {where}: {reason(first)}.") from None


def failure(error: BaseException, log: CallLog) -> WorkbenchError:
    """The coded error for what a function raised; its traceback goes to the log."""
    if isinstance(error, WorkbenchError):
        return error
    if isinstance(error, FunctionCancelled):
        return Unavailable("TOOL_INTERRUPTED", "The tool was interrupted.")
    own = error.__traceback__.tb_next if error.__traceback__ else None  # without the frame above
    log.write("".join(traceback.format_exception(type(error), error, own)))
    said = [error] if (inside := first_within(error)) is error else [error, inside]
    text = ": ".join("".join(traceback.format_exception_only(one)).strip() for one in said)
    return Unavailable("TOOL_FAILED", f"The tool failed: {text[:MESSAGE_LIMIT]}")

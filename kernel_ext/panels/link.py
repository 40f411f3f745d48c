"""Shared by both directions of a panel's connection: the types of the host and of `send`, and errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from kernel_ext.panels import PanelClosed
from workbench.errors import WorkbenchError

T = TypeVar("T")

Send = Callable[[dict[str, Any], list[bytes]], None]
"""Sends a message with its buffers to the page, from any thread. Raises `PanelClosed`; any other error is a defect."""

log = logging.getLogger(__name__)


class Host(Protocol):
    """The part of `KernelHost` that a panel uses."""

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the host's loop. Raises `WorkbenchError` when there is none."""
        ...

    async def acall(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation as the operator, on the host's loop."""
        ...


def try_to_send(send: Send, message: Mapping[str, Any]) -> bool:
    """Send a message without buffers, where no caller could handle a failure; whether it was sent.

    A closed panel is normal; any other failure is logged.
    """
    try:
        send(dict(message), [])
    except PanelClosed:
        return False
    except Exception:
        log.exception("a message of kind %s could not be sent to a panel", message["kind"])
        return False
    return True


def internal_error() -> WorkbenchError:
    """The error that a page gets for a defect."""
    return WorkbenchError("INTERNAL_ERROR", "Workbench failed. The cause is in .aiswarm/logs/server.log.")

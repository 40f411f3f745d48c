"""What the two directions of a panel's connection share: the host, the way to the page, and messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from kernel_ext.panels import PanelClosed
from workbench.errors import WorkbenchError

T = TypeVar("T")

Send = Callable[[dict[str, Any], list[bytes]], None]
"""Sends a message with its buffers to the page, from any thread. Raises `PanelClosed`; anything else is a defect."""

log = logging.getLogger(__name__)


class Host(Protocol):
    """What a panel needs of `KernelHost`."""

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the host's loop. Raises `WorkbenchError` when there is none."""
        ...

    async def acall(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation as the operator, on the host's loop."""
        ...


def try_to_send(send: Send, message: Mapping[str, Any]) -> bool:
    """Send a message without buffers where no caller is left to handle a failure; whether it was sent.

    A closed panel is expected, any other failure is logged.
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
    """What a page is shown of a defect."""
    return WorkbenchError("INTERNAL_ERROR", "Workbench failed. The cause is in .aiswarm/logs/server.log.")

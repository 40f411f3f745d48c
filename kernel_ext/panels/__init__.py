"""What panels have in common. The files of a panel have the same stem (`desk.py`, `src/desk.js`, `static/desk.js`).

A panel is live only where a notebook page shows it. Elsewhere (papermill, nbval, nbconvert, a terminal) it opens no
comm and is displayed as plain tables that are the same on every run.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol, TypeVar

from IPython.core.getipython import get_ipython

from workbench.errors import WorkbenchError

T = TypeVar("T")

Send = Callable[[dict[str, Any], list[bytes]], None]
"""Sends a message with its buffers to the page, from any thread. Raises `PanelClosed`; any other error is a defect."""

STATIC = Path(__file__).parent / "static"
"""The output of `npm run build` from `src/`."""

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

log = logging.getLogger(__name__)


class PanelClosed(Exception):
    """The page has closed the panel: nothing more can be sent to it."""


class Host(Protocol):
    """The part of `KernelHost` that a panel uses."""

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the host's loop. Raises `WorkbenchError` when there is none."""
        ...

    async def acall(self, name: str, person: str | None = None, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation as the operator, on the host's loop, for one of several people."""
        ...


def has_frontend() -> bool:
    """Whether the running cell came from a notebook page, which can show a widget.

    JupyterLab and Notebook send the id of the cell, batch tools do not. `WORKBENCH_FRONTEND` (0 or 1) overrides.
    """
    if value := os.environ.get("WORKBENCH_FRONTEND"):
        return value.lower() not in ("0", "no", "false")
    kernel = getattr(get_ipython(), "kernel", None)
    return bool(kernel and "cellId" in (kernel.get_parent().get("metadata") or {}))


def may_have_reader() -> bool:
    """Whether a person may look at the output now: in a notebook page, or one that shows no widgets (nbclassic).

    A Jupyter Server names the session of its kernels; batch tools have none.
    """
    return has_frontend() or ("JPY_SESSION_NAME" in os.environ and "WORKBENCH_FRONTEND" not in os.environ)


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

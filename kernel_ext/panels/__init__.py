"""Panels: one panel is one stem (`desk.py`, `src/desk.js`, `static/desk.js`). Here is what they share.

A panel is live only in a front end. Everywhere else (papermill, nbval, nbconvert, a terminal) it
opens no comm and shows itself as plain tables that come out the same on every run.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
from IPython.core.getipython import get_ipython

from workbench.tables import Page, Table

STATIC = Path(__file__).parent / "static"
"""The bundles that `npm run build` makes of `src/`."""

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def has_frontend() -> bool:
    """Whether somebody can see a widget: the running cell came from a notebook page.

    `WORKBENCH_FRONTEND` (0 or 1) overrules. JupyterLab and Notebook say which cell they run, batch
    tools do not.
    """
    if said := os.environ.get("WORKBENCH_FRONTEND"):
        return said.lower() not in ("0", "no", "false")
    kernel = getattr(get_ipython(), "kernel", None)
    return bool(kernel and "cellId" in (kernel.get_parent().get("metadata") or {}))


class Panel(anywidget.AnyWidget):
    """Base of the panels. A subclass names its bundle and says what it shows in words and tables."""

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.on_msg(self._received)

    def open(self) -> None:
        """Open the comm, where somebody listens. Called by ipywidgets, and before the first display."""
        if not has_frontend() or getattr(self, "comm", None) is not None:
            return
        super().open()
        comm = self.comm
        # ipykernel 7.4 sends a click to the shell that last published on the comm, which is the
        # busy main one; JupyterLab's own choice of a subshell is the one that answers at once.
        if comm is not None and hasattr(type(comm), "_reply_subshell_for"):
            comm._reply_subshell_for = lambda data, default: default

    def tell(self, content: Mapping[str, Any], buffers: list[bytes]) -> None:
        """Send a message to the front end; callable from any thread, and after the end."""
        with contextlib.suppress(Exception):  # the comm or the kernel has just closed: nobody to tell
            self.send(dict(content), buffers)

    def received(self, content: Mapping[str, Any]) -> None:
        """Handle a message of the front end. Any thread: check, hand over, return at once."""

    def summary(self) -> list[tuple[str, Table]]:
        """What the panel shows as titled tables, without ports, random ids and times."""
        raise NotImplementedError

    def _received(self, _: Any, content: Any, __: Any) -> None:
        if isinstance(content, dict):
            self.received(content)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        self.open()
        data: dict[str, Any] = {}
        if has_frontend() and self.comm is not None:
            data[WIDGET_VIEW] = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        page = Page(self.summary())
        data["text/plain"], data["text/html"] = page.text(), page.html()
        return data, {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

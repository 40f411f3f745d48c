"""The base class of panels: a widget that is displayed as plain tables where it is not live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

import anywidget
import traitlets
from IPython.core.getipython import get_ipython
from IPython.display import publish_display_data

from kernel_ext import kernel_status
from kernel_ext.panels import WIDGET_VIEW, PanelClosed, has_frontend, may_have_reader
from workbench.present.inert import as_html, inert, prose_as_html
from workbench.present.tables import Table, TablePage

AT_END = "To open the panel, run this cell again."
NOT_LIVE = (
    "It is not live here: trust the notebook (File → Trust Notebook), or install `anywidget` and `jupyterlab_widgets` "
    "where JupyterLab runs. `%workbench` shows the present state."
)
"""What to do, below the tables' time: when the panel is closed, and where a page shows the tables instead of it."""


class Panel(anywidget.AnyWidget):
    """Base class of the panels. A subclass names its bundle, handles messages, and summarises itself as tables."""

    panel_id = traitlets.Unicode("").tag(sync=True)
    """The id of the widget, by which its page finds it in the notebook."""
    last_state = traitlets.Unicode("").tag(sync=True)
    """HTML, which the page puts into the notebook when that is saved: it is shown where the panel is not live."""

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self._display_id = uuid4().hex
        self._displayed = False
        self._has_page = False
        self._is_shared = False
        self._shown = ""
        self.on_msg(self._on_message)

    def open(self) -> None:
        """Open the comm where there is a front end. Called by ipywidgets, and before the panel is first displayed."""
        if not has_frontend() or getattr(self, "comm", None) is not None:
            return
        super().open()
        kernel_status.separate(getattr(get_ipython(), "kernel", None))
        comm = self.comm
        # ipykernel 7.4 routes a page's message to the shell that last published on the comm, which may be the main one,
        # busy with a cell. JupyterLab's own choice is a subshell, which answers at once.
        if comm is not None and hasattr(type(comm), "_reply_subshell_for"):
            comm._reply_subshell_for = lambda data, default: default
        self.panel_id = self.model_id

    def post(self, content: Mapping[str, Any], buffers: list[bytes]) -> None:
        """Send a message to the page; callable from any thread.

        Raises:
            PanelClosed: the panel is closed. Any other error is a defect in the message.
        """
        if self.comm is None or getattr(self.comm, "_closed", False):
            raise PanelClosed
        self.send(dict(content), buffers)

    def on_message(self, content: Mapping[str, Any]) -> None:
        """Handle a message from the page. May run in any thread: check the message, hand it on, and return at once."""

    def summary(self) -> list[tuple[str, Table]]:
        """The panel's content as titled tables, without ports, random ids and times: tests compare them."""
        raise NotImplementedError

    def keep_last_state(self, sections: Sequence[tuple[str, Table]], *, ended: bool = False) -> None:
        """Keep a summary, with the time, for where the panel is not live; callable from any thread.

        A page puts it into the notebook when that is saved. Without a live page it replaces the tables in the output;
        at the end also where the notebook is edited together, as then the server saves it.

        Args:
            ended: the panel is being closed.
        """
        page = TablePage(sections)
        self.last_state = _as_it_was(page, AT_END)["text/html"]
        is_news = ended or page.text() != self._shown
        is_saved_by_page = self._has_page and not (ended and self._is_shared)
        if self._displayed and not is_saved_by_page and is_news and getattr(get_ipython(), "kernel", None):
            self._shown = page.text()
            self._publish(_as_it_was(page, AT_END) if ended else self._view() | _as_it_was(page, NOT_LIVE), update=True)

    def replace(self, *lines: str) -> None:
        """Show text in place of the panel, where it was displayed by the running cell."""
        markup = "".join(f"<p>{as_html(line)}</p>" for line in lines)
        self._publish({"text/plain": inert("\n".join(lines)), "text/html": markup}, update=True)

    def _on_message(self, _: Any, content: Any, __: Any) -> None:
        if isinstance(content, dict):
            self.on_message(content)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        self.open()
        page = TablePage(self.summary())
        self._shown = page.text()
        tables = (
            _as_it_was(page, NOT_LIVE) if may_have_reader() else {"text/plain": page.text(), "text/html": page.html()}
        )
        return (self._view() if has_frontend() else {}) | tables, {}

    def _view(self) -> dict[str, Any]:
        """What a page shows live, if it can."""
        if self.comm is None:
            return {}
        return {WIDGET_VIEW: {"version_major": 2, "version_minor": 0, "model_id": self.model_id}}

    def _ipython_display_(self) -> None:
        data, _ = self._repr_mimebundle_()
        self._publish(data)
        self._displayed = True

    def _publish(self, data: dict[str, Any], update: bool = False) -> None:
        if get_ipython() is not None:  # publishing would start a shell
            publish_display_data(data, transient={"display_id": self._display_id}, update=update)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _as_it_was(page: TablePage, advice: str) -> dict[str, Any]:
    """Tables below their time and what to do."""
    when = datetime.now().astimezone().strftime("%d %B %Y, %H:%M %Z").lstrip("0")
    lead = f"Workbench, as it was on {when}. {advice}"
    return {"text/plain": f"{lead}\n\n{page.text()}", "text/html": f"<p>{prose_as_html(lead)}</p>{page.html()}"}

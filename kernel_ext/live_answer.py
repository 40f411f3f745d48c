"""Shows an answer in the running cell while it is generated.

Each piece of text and each call of a tool is an output of its own, so that a card that was opened stays open. In a
batch run the whole answer is one output at the end, in a terminal it is printed.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

from IPython.core.getipython import get_ipython
from IPython.display import publish_display_data

from kernel_ext.panels import has_frontend
from workbench.cli.chat.answer import Answer, ConversationCaller
from workbench.cli.chat.parts import as_text
from workbench.cli.chat.terminal import print_answer
from workbench.errors import Interrupted, WorkbenchError
from workbench.present.inert import as_html
from workbench.rules.chat.transcript import CallState, TextPart, ToolPart

if TYPE_CHECKING:
    from kernel_ext.hosting.host import KernelHost
    from kernel_ext.panels.question import CellQuestion

READ_SECONDS = 20.0
REFRESH_SECONDS = 0.1
EFFORT = 10
"""A text that is long is rendered less often: rendering takes at most one part in this many of the time."""


class LiveNotebook(ConversationCaller, Protocol):
    """A notebook's session."""

    @property
    def host(self) -> KernelHost:
        """The servers' host.

        Raises:
            Unavailable: ``NOT_STARTED``.
        """
        ...


def show(notebook: LiveNotebook, answer: Answer) -> None:
    """Show an answer until it has ended. An interrupt of the cell stops it; its beginning stays.

    Raises:
        WorkbenchError: it failed. Interrupted: ``ANSWER_STOPPED``.
    """
    if getattr(get_ipython(), "kernel", None) is None:
        print_answer(notebook, answer)
        return
    live = _Live(notebook, answer) if has_frontend() else None
    try:
        while answer.turn is None:
            answer.read(live.wait_seconds if live else READ_SECONDS)
            if live:
                live.refresh()
    except KeyboardInterrupt:
        answer.stop()
        raise Interrupted("ANSWER_STOPPED", "The answer was stopped. What came of it is kept; ask to go on.") from None
    finally:
        live.end() if live else publish(answer)
    if answer.failure is not None:
        raise answer.failure


def publish(answer: Answer) -> None:
    """Show an answer as it is, in one output."""
    publish_display_data({"text/plain": answer.plain(), "text/html": answer.html()})


class _Live:
    """The outputs of an answer in a page."""

    def __init__(self, notebook: LiveNotebook, answer: Answer) -> None:
        self._notebook = notebook
        self._answer = answer
        self._shown: list[TextPart | ToolPart] = []
        self._questions: dict[int, CellQuestion] = {}
        self._id = uuid4().hex
        self._due = 0.0
        self._is_behind = False

    @property
    def wait_seconds(self) -> float:
        """How long to wait for the next frames: not long, while something is not shown yet."""
        return REFRESH_SECONDS if self._is_behind else READ_SECONDS

    def refresh(self) -> None:
        """Show what has come, unless that was just done."""
        began = time.monotonic()
        self._is_behind = began < self._due
        if not self._is_behind:
            self._show_all()
            self._due = began + max(REFRESH_SECONDS, EFFORT * (time.monotonic() - began))

    def end(self) -> None:
        """Show everything, and how the answer ended."""
        self._show_all()
        for question in self._questions.values():
            question.interrupted()
        if self._answer.failure is None and (ending := self._answer.ending()):
            publish_display_data({"text/plain": ending, "text/html": f"<p><em>{as_html(ending)}</em></p>"})

    def _show_all(self) -> None:
        for index, part in enumerate(self._answer.parts):
            is_new = index >= len(self._shown)
            if is_new or part != self._shown[index]:
                data = {"text/plain": as_text(part), "text/html": self._answer.page(part)}
                publish_display_data(data, transient={"display_id": f"{self._id}-{index}"}, update=not is_new)
                self._shown[index : index + 1] = [part]
            if isinstance(part, ToolPart) and part.approval_id is not None:
                self._ask(part, part.approval_id)

    def _ask(self, part: ToolPart, approval_id: int) -> None:
        """Ask whether a tool may run, and show the decision afterwards."""
        from kernel_ext.panels.question import CellQuestion

        question = self._questions.get(approval_id)
        if part.state is CallState.WAITING and question is None:
            self._questions[approval_id] = question = CellQuestion(self._notebook.host, [approval_id])
            question._ipython_display_()
        elif part.state is not CallState.WAITING and question is not None:
            del self._questions[approval_id]
            with suppress(WorkbenchError):
                question.answered([self._notebook.call("get_approval", approval_id=approval_id)])

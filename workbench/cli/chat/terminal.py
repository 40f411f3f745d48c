"""A conversation in a terminal: an answer is printed as it comes, and you are asked before a tool runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from workbench.cli.approvals import QUESTION, question_text
from workbench.cli.chat.answer import Answer, ConversationCaller, Frame
from workbench.cli.chat.parts import call_line, changed_lines, end_line, indented
from workbench.cli.questions import asked_fields
from workbench.errors import WorkbenchError
from workbench.present.inert import inert
from workbench.rules.chat.transcript import FrameKind, ToolPart

READ_SECONDS = 20.0
ANSWERS = {"o": "once", "c": "conversation", "a": "always", "n": "no"}

REPLIES = {"a": "accept", "d": "decline", "c": "cancel"}


class Printer:
    """Prints the frames of one answer. The text is not buffered; a line about a tool begins on a line of its own."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._is_in_line = False

    def show(self, frame: Frame) -> None:
        """Print a frame."""
        data = frame["data"]
        match frame["type"]:
            case FrameKind.TOKEN:
                self._write(str(data["content"]))
            case FrameKind.THINKING:
                self._write(str(data["content"]), dim=True)
            case FrameKind.RETRY:
                self.line(f"{data['code']}: {data['message']}")
            case FrameKind.COMPACTED:
                self.line(str(data["message"]))
            case FrameKind.TOOL_START:
                self.line(call_line(self._call(data)))
            case FrameKind.TOOL_WAITING | FrameKind.TOOL_COMPLETE:
                self.line(end_line(self._call(data)))

    def line(self, text: str) -> None:
        """Print a line that is not the model's text."""
        if text:
            self.end_line()
            click.secho(inert(text), dim=True)

    def end_line(self) -> None:
        """End the line of text that is being printed, if there is one."""
        if self._is_in_line:
            click.echo()
        self._is_in_line = False

    def _write(self, text: str, dim: bool = False) -> None:
        if text:
            click.echo(click.style(inert(text), dim=True) if dim else inert(text), nl=False)
            sys.stdout.flush()
            self._is_in_line = not text.endswith("\n")

    def _call(self, data: Mapping[str, Any]) -> ToolPart:
        return next(call for call in self._answer.tool_calls if call.call_id == data["call_id"])


def print_answer(caller: ConversationCaller, answer: Answer) -> None:
    """Print an answer until it has ended. Ctrl-C stops it; what has come of it is kept.

    Raises:
        WorkbenchError: the answer failed. KeyboardInterrupt: it was stopped.
    """
    printer = Printer(answer)
    try:
        while answer.turn is None:
            for frame in answer.read(READ_SECONDS):
                printer.show(frame)
                if frame["type"] == FrameKind.TOOL_WAITING:
                    _decide(caller, answer, frame["data"])
        if answer.failure is None:
            printer.line(answer.ending())
    except KeyboardInterrupt:
        answer.stop()
        raise
    finally:
        printer.end_line()
    if answer.failure is not None:
        raise answer.failure


def _decide(caller: ConversationCaller, answer: Answer, data: Mapping[str, Any]) -> None:
    """Ask the person at the terminal whether a tool may run; without one, it waits for a decision elsewhere."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    try:
        approval = caller.call("get_approval", approval_id=data["approval_id"])
        if approval["status"] == "pending" and approval["kind"] == QUESTION:
            click.echo(inert(question_text(approval["payload"])))
            _reply(caller, approval["id"], approval["payload"])
        elif approval["status"] == "pending":
            call = next(call for call in answer.tool_calls if call.call_id == data["call_id"])
            click.echo(inert(indented(call.tool_input)))
            _answer(caller, approval["id"], _choose(approval["payload"]))
    except WorkbenchError as error:  # it was decided elsewhere meanwhile
        click.secho(str(error), dim=True)


def _reply(caller: ConversationCaller, approval_id: int, payload: Mapping[str, Any]) -> None:
    """Answer a question of a server, as the person chooses. Enter alone declines."""
    choice = click.Choice([*REPLIES])
    question = "Answer it? a: answer, d: decline, c: cancel"
    reply = REPLIES[click.prompt(question, type=choice, default="d", show_choices=False)]
    content = {"content": asked_fields(payload, {})} if reply == "accept" else {}
    caller.call("approve", approval_id=approval_id, choices={"action": reply, **content})


def _choose(asked: Mapping[str, Any]) -> str:
    """What the person chooses. Enter alone refuses the call of a tool that may delete something, or that has changed
    since it was allowed."""
    if changes := asked["changes"]:
        click.secho(changed_lines(changes), fg="yellow")
    choice = click.Choice([*ANSWERS])
    question = "Run it? o: once, c: in this conversation, a: always, n: no"
    default = "n" if changes or asked["destructive"] else "o"
    return ANSWERS[click.prompt(question, type=choice, default=default, show_choices=False)]


def _answer(caller: ConversationCaller, approval_id: int, choice: str) -> None:
    if choice == "no":
        caller.call("reject", approval_id=approval_id, reason="Refused in the terminal.")
    else:
        caller.call("approve", approval_id=approval_id, choices={"remember": choice})

"""Hears what an agent's program says while it works, passes it on, and judges whether it may go on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.drivers.stream import Happening, Note, ProgramFailure, ProgramStream, Told, ToolEnd, ToolStart
from workbench.rules.failures import FailureKind
from workbench.worker.command import TOO_LONG, CommandResult

CALL_LIMIT = 200
"""Characters of a call's arguments in a note."""
TOLD_LINES = 20
"""Lines at the end of a failed call's result that are looked at for refusals."""
LEAVE_SECONDS = 5.0
"""How long a program that is talked to may take to exit when there is nothing more to say."""

Call = ToolStart | ToolEnd


@dataclass
class Listener:
    """Hears one run of a program.

    Args:
        told: makes a value of it, such as the arguments of a call, one without secrets, as it is told outside.
        on_line: gets each line of its notes.
        on_call: gets the beginnings and the ends of its calls of tools, without secrets.
        on_told: gets the last lines of calls that failed, which may tell of a refusal.
        silence_seconds: how long it may say nothing while none of its tools runs.
        on_taken: gets the ids of messages that its agent has got.
    """

    stream: ProgramStream
    told: Callable[[Any], Any]
    on_line: Callable[[str], None]
    on_call: Callable[[Call], None]
    on_told: Callable[[str], None]
    silence_seconds: float
    on_taken: Callable[[int], None] = lambda message: None
    _heard_at: float = field(default_factory=time.monotonic)

    def hear(self, line: str) -> None:
        """Hear a line of its standard output."""
        if line == TOO_LONG:  # it may have told of the end of a call
            self.stream.open.clear()
        self._pass_on(self.stream.hear(line))

    def hear_error(self, line: str) -> None:
        """Hear a line of its standard error."""
        self._pass_on(self.stream.hear_error(line))

    def say(self, is_ending: bool) -> str | None:
        """What the program is told next; see `WorkerCommand.say`."""
        said = self.stream.say(is_ending=is_ending)
        self._tell_of_taken()
        return said

    def tell(self, message: Told) -> None:
        """Have the program told a message."""
        if self.stream.talks:
            self.on_line(f"[told: message {message.id}]")
        self.stream.tell(message)

    @property
    def reads_messages(self) -> bool:
        """Whether its agent waits for messages itself, and gets them so."""
        return not {"read_messages", "heartbeat_and_get_tasks"}.isdisjoint(self.stream.open.values())

    def verdict(self) -> str | None:
        """Why the program is to be ended now; None: it may go on."""
        if self.stream.is_hopeless and self.stream.trouble:
            return self.stream.trouble.message
        if self.stream.is_interrupted and not self.stream.talks:
            return "it was told something for which its turn ends"
        silent = time.monotonic() - self._heard_at
        if self._is_over and silent > LEAVE_SECONDS:
            return "it has done its work"
        if silent > self.silence_seconds and not self.stream.open:
            return f"it said nothing for {self.silence_seconds:g} s"
        return None

    def failure(self, result: CommandResult) -> ProgramFailure | None:
        """How the run failed; None if it did not."""
        if result.ended and not (self.stream.is_hopeless or self._is_over):
            known = self.stream.trouble
            kind, said = (known.kind, f" Before, it said: {known.message}") if known else (FailureKind.SILENT, "")
            return ProgramFailure(kind, f"The program was ended: {result.ended}.{said}")
        return self.stream.end(result.status)

    @property
    def _is_over(self) -> bool:
        """Whether a program that is talked to has said its last word."""
        return self.stream.talks and self.stream.has_ended

    def _pass_on(self, happenings: Iterable[Happening]) -> None:
        self._heard_at = time.monotonic()
        self._tell_of_taken()
        for happening in happenings:
            match happening:
                case Note(text):
                    for line in text.splitlines():
                        self.on_line(line)
                case ToolStart():
                    self._call(replace(happening, arguments=self.told(happening.arguments)))
                case ToolEnd():
                    self._end(replace(happening, result=self.told(happening.result)))

    def _tell_of_taken(self) -> None:
        taken, self.stream.taken = self.stream.taken, []
        for message in taken:
            self.on_taken(message)

    def _call(self, call: ToolStart) -> None:
        name = f"{call.server}: {call.tool}" if call.server else call.tool
        values = call.arguments.values() if isinstance(call.arguments, dict) else [call.arguments]
        shown = " ".join(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values)
        self.on_line(f"[{name}] {' '.join(shown.split())[:CALL_LIMIT]}".rstrip())
        self.on_call(call)

    def _end(self, end: ToolEnd) -> None:
        if end.is_error:
            text = end.result if isinstance(end.result, str) else json.dumps(end.result, ensure_ascii=False)
            for line in text.splitlines()[-TOLD_LINES:]:
                self.on_told(line)
        self.on_call(end)

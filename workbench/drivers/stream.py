"""What an agent's program says while it works: its output, line by line, as events, and how it ended.

Pure: a stream is given lines and an exit status. What it keeps is bounded, whatever the program writes.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.rules.failures import FailureKind

NOTE_LIMIT = 10_000
"""Characters of one note."""
VALUE_LIMIT = 100_000
"""Characters of the JSON of a tool's arguments or result; more is cut off."""
ANSWER_LIMIT = 2_000_000
MESSAGE_LIMIT = 2_000
CONTINUED = "This conversation is that of the last attempt: go on where it ended."
"""What a program that continues a conversation is told."""
OPEN_LIMIT = 1_000
"""Calls of tools that are under way at once."""


@dataclass(frozen=True, slots=True)
class Note:
    """A text of the program: of its model, or about a problem."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStart:
    """The program calls a tool: one of its own (`server` is None), or that of an MCP server."""

    call: str
    tool: str
    arguments: Any
    server: str | None = None


@dataclass(frozen=True, slots=True)
class ToolEnd:
    """A call of a tool has ended."""

    call: str
    result: Any
    is_error: bool


Happening = Note | ToolStart | ToolEnd


@dataclass(frozen=True, slots=True)
class ProgramUsage:
    """What a run has used, as the program says; None: it does not say.

    `input_tokens` includes `cached_tokens`. After a resume the figures are of all runs of the session, where
    `is_of_session`.
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    is_of_session: bool = False

    def plus(self, other: ProgramUsage) -> ProgramUsage:
        """What this and another turn have used."""
        names = ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")
        return replace(self, **{name: _sum(getattr(self, name), getattr(other, name)) for name in names})

    def since(self, before: ProgramUsage | None) -> ProgramUsage:
        """What was used since an earlier run of the same session."""
        if before is None or not self.is_of_session:
            return self
        names = ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")
        return replace(self, **{name: _minus(getattr(self, name), getattr(before, name)) for name in names})


def _sum(one: float | None, other: float | None) -> Any:
    return other if one is None else one if other is None else one + other


def _minus(now: float | None, before: float | None) -> Any:
    return now if now is None or before is None else max(now - before, type(now)())


@dataclass(frozen=True, slots=True)
class ProgramFailure:
    """How a run failed. `until`: when it may be tried again, in seconds since 1970, if the provider said so."""

    kind: FailureKind
    message: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """What a program that is talked to is told at first.

    Args:
        directory: where it works, as it sees that.
        servers: its MCP servers, in the form of the Agent Client Protocol.
        session: the conversation to continue; None: a new one.
    """

    prompt: str = field(repr=False)
    directory: str
    servers: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A message to the agent. `interrupts`: its turn is to be ended for it."""

    id: int
    text: str
    interrupts: bool = False


@dataclass
class ProgramStream:
    """One run of a program.

    Args:
        servers: the names of its MCP servers, where names of tools do not say where the server's ends.
        clock: the time in seconds since 1970, for a program that says how long to wait.

    `answer` is its last word, whole; `session` the id by which the program resumes its conversation.
    """

    servers: Sequence[str] = ()
    clock: Callable[[], float] = time.time
    session: str | None = None
    answer: str = ""
    usage: ProgramUsage = ProgramUsage()
    has_ended: bool = False
    """Whether the program has said how the run ended."""
    trouble: ProgramFailure | None = None
    """The last failure that was told of, as long as nothing has succeeded since."""
    is_hopeless: bool = False
    """Whether more tries of the program cannot help: it is to be ended."""
    open: dict[str, str] = field(default_factory=dict)
    """The tools that run, by the ids of their calls."""
    talks: bool = False
    """Whether it is talked to on its standard input, rather than given all at once."""
    is_closed: bool = False
    """Whether it has been told the last word."""
    is_interrupted: bool = False
    """Whether its turn is being ended for a message."""
    untaken: dict[int, Told] = field(default_factory=dict)
    """The messages that its agent has not got yet, by their ids."""
    taken: list[int] = field(default_factory=list)
    """The ids of those that its agent has got since somebody looked."""
    _unsent: list[str] = field(default_factory=list)

    def begin(self, start: Start) -> None:
        """Have the program told about its work, if it is talked to."""

    def tell(self, message: Told) -> None:
        """Have the agent get a message as soon as its program can take one; one that is not talked to cannot."""
        self.untaken[message.id] = message
        self.is_interrupted |= message.interrupts

    def say(self, *, is_ending: bool = False) -> str | None:
        """What is written to its standard input next; None: nothing more, it is closed.

        Args:
            is_ending: the program is about to be ended.
        """
        said, self._unsent = "".join(self._unsent), []
        self.is_closed = not said and (is_ending or not self.talks or (self.has_ended and not self.untaken))
        return None if self.is_closed else said

    def hear(self, line: str) -> Iterator[Happening]:
        """The events of a line of its standard output. A line that is no JSON object is a note."""
        message = _object(line)
        if message is None:
            yield from _note(line)
            return
        try:
            happenings = list(self.read(message))
        except (AttributeError, KeyError, TypeError, ValueError):  # other JSON than this program writes
            yield from _note(line)
            return
        for happening in happenings:
            yield from self._kept(happening)

    def hear_error(self, line: str) -> Iterator[Happening]:
        """The events of a line of its standard error."""
        yield from _note(line)

    def read(self, message: Mapping[str, Any]) -> Iterable[Happening]:
        """The events of one message of the program."""
        raise NotImplementedError

    def end(self, status: int) -> ProgramFailure | None:
        """How the run ended, once the program has; None: well.

        Args:
            status: its exit status, minus the signal's number if that ended it. A good one proves nothing.
        """
        if self.has_ended and self.trouble is None and status == 0:
            return None
        if self.trouble is not None:
            return self.trouble
        how = f"by the signal {-status}" if status < 0 else f"with status {status}"
        what = "" if self.has_ended else ", and did not say how its work ended"
        return ProgramFailure(FailureKind.CRASHED, f"The program ended {how}{what}.")

    def _take(self, message: int) -> None:
        """Note that the agent has a message."""
        if self.untaken.pop(message, None) is not None:
            self.taken.append(message)

    def note_trouble(self, kind: FailureKind, message: str, until: float | None = None) -> None:
        """Remember a failure; what was known of the same kind before is kept where this says less."""
        before = self.trouble if self.trouble and self.trouble.kind is kind else None
        said = message.strip()[:MESSAGE_LIMIT] or (before.message if before else str(kind))
        self.trouble = ProgramFailure(kind, said, until if until is not None else before.until if before else None)

    def _kept(self, happening: Happening) -> Iterator[Happening]:
        """An event, cut to what is kept; the end of a call only after its beginning, and one beginning for a call."""
        match happening:
            case Note(text):
                yield from _note(text)
            case ToolStart(call=call) if call not in self.open and len(self.open) < OPEN_LIMIT:
                self.open[call] = happening.tool
                yield replace(happening, arguments=_cut(happening.arguments))
            case ToolEnd(call=call) if self.open.pop(call, None) is not None:
                yield replace(happening, result=_cut(happening.result))


@dataclass
class ChunkedStream(ProgramStream):
    """One run of a program that tells in pieces what its model says."""

    _said: str = ""
    """What the model has said since the last tool, and how much of it is told."""
    _told: int = 0

    def _say_more(self, content: str) -> Iterator[Happening]:
        self.trouble = None
        self._said = (self._said + content)[:ANSWER_LIMIT]
        self.answer = self._said
        if "\n" in content:
            yield from self._tell(self._said.rindex("\n"))

    def _tell(self, end: int | None = None) -> Iterator[Happening]:
        text, self._told = self._said[self._told : end], len(self._said) if end is None else end
        yield Note(text)

    def _begin_message(self) -> None:
        self._said, self._told, self.trouble = "", 0, None


def count(value: Any) -> int | None:
    """A number of tokens that a program tells; None if it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def amount(value: Any) -> float | None:
    """An amount of money that a program tells; None if it is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9 else None


def time_of(value: Any) -> float | None:
    """A time in seconds since 1970 that a program tells; None if it is none."""
    return float(value) if isinstance(value, int | float) and 1e9 < value < 1e10 else None


def kind_of_status(status: int) -> FailureKind:
    """The kind of failure that an HTTP status of the provider means."""
    if status in (401, 403):
        return FailureKind.AUTH
    if status == 429:
        return FailureKind.LIMIT
    return FailureKind.OVERLOADED if status >= 500 or status == 408 else FailureKind.REFUSED


def text_of(value: Any) -> str:
    """A text that a program tells; empty if it is none."""
    return value if isinstance(value, str) else ""


def first_match(text: str, kinds: Sequence[tuple[re.Pattern[str], FailureKind]]) -> FailureKind | None:
    """The kind of the first pattern that occurs in a text."""
    said = text[: 10 * MESSAGE_LIMIT]
    return next((kind for pattern, kind in kinds if pattern.search(said)), None)


def _object(line: str) -> Mapping[str, Any] | None:
    if not line.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _note(text: str) -> Iterator[Note]:
    if said := text.strip():
        yield Note(said if len(said) <= NOTE_LIMIT else f"{said[:NOTE_LIMIT]} […]")


def _cut(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= VALUE_LIMIT else f"{text[:VALUE_LIMIT]} […]"

"""Every error that reaches a user, an agent or a log, as one class tree with stable codes.

    WorkbenchError
    ├── BadInput        400  the request itself is wrong; sending it again cannot help
    ├── Unauthenticated 401  the caller is unknown
    ├── Refused         403  the caller is known but may not do this
    ├── NotFound        404  what the request names does not exist
    ├── WrongMethod     405  the endpoint exists, but not for this method (HTTP only)
    ├── Conflict        409  the request is valid, but conflicts with the present state
    ├── TooMany         429  too many requests; the same one succeeds later
    └── Unavailable     503  a resource outside the request failed (disk, port, git, peer)

`code` is the contract: its meaning never changes, and every shell passes it on unchanged. `message` is for a person or
a model and says what to do next. `details` is JSON-ready.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from workbench.present.inert import inert


class Hint:
    """The next step of an error: a sentence about an operation, which each shell calls as its users do.

    Args:
        operation: its name; "" if the one that has failed is to be called again, with the arguments.
        sentence: the first `{}` stands for the operation.
        typed: the sentence for who types commands, if it is another.
        arguments: those to call it with.
    """

    def __init__(self, operation: str, sentence: str = "{} lists them.", typed: str = "", /, **arguments: Any) -> None:
        self.operation, self.sentence, self.typed, self.arguments = operation, sentence, typed, arguments

    def __str__(self) -> str:
        """The sentence for agents and programs, which call operations by their names."""
        return self.text(self.operation, lambda argument, value: f"{argument}={json.dumps(value)}")

    def text(self, name: str, write: Callable[[str, Any], str], *, is_typed: bool = False) -> str:
        """The sentence with another name of the operation, and with the arguments as `write` has them."""
        arguments = " and ".join(write(argument, value) for argument, value in self.arguments.items())
        sentence = (self.typed if is_typed else "") or self.sentence
        return sentence.replace("{}", " with ".join(filter(None, (name, arguments))), 1)

    def as_dict(self) -> dict[str, Any]:
        """The form shells send."""
        return {key: value for key, value in vars(self).items() if value}


class OneLine:
    """An exception that IPython shows as its text, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class WorkbenchError(OneLine, Exception):
    """The root of the tree; raise one of its subclasses.

    Args:
        code: stable upper-case identifier, such as ``TASK_NOT_FOUND``.
        message: one or two sentences: what is wrong, and what to do next.
        hint: what to do next, if that is to call an operation; the sentence follows the message.
        details: JSON-ready facts about this occurrence.
    """

    status: ClassVar[int] = 500

    def __init__(self, code: str, message: str, hint: Hint | None = None, /, **details: Any) -> None:
        self.code = code
        self.message = " ".join(filter(None, (message, str(hint or ""))))
        self.hint = hint
        self.details = details
        super().__init__(f"{code}: {self.message}")

    @property
    def is_of_store(self) -> bool:
        """Whether it is about the store, so that everything that uses the store meets it."""
        return self.code.startswith("STORE_")

    def __str__(self) -> str:
        """Code and message, harmless to show: an error may quote what an agent wrote."""
        return inert(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors may come from another process."""
        return from_dict, (self.as_dict(),)

    def as_dict(self) -> dict[str, Any]:
        """The form shells send: ``{"code", "message", "details", "status"}``, and ``hint`` if there is one."""
        error = {"code": self.code, "message": self.message, "details": self.details, "status": self.status}
        return error | ({"hint": self.hint.as_dict()} if self.hint else {})

    def with_message(self, message: str, **details: Any) -> Self:
        """The same error with another message, and more details."""
        error = type(self)(self.code, message, **self.details | details)
        error.hint = self.hint
        return error

    def with_hint(self, write: Callable[[Hint], str]) -> Self:
        """The same error with its hint in the words of `write`; it is only text then, and no longer a hint."""
        message = self.message.replace(str(self.hint), write(self.hint)) if self.hint else self.message
        error = self.with_message(message)
        error.hint = None
        return error

    def mask(self, mask: Callable[[str], str]) -> None:
        """Mask secrets in the message, and in the hint."""
        self.message = mask(self.message)
        self.args = (f"{self.code}: {self.message}",)
        if hint := self.hint:
            arguments = {name: mask(one) if isinstance(one, str) else one for name, one in hint.arguments.items()}
            self.hint = Hint(hint.operation, mask(hint.sentence), mask(hint.typed), **arguments)


class BadInput(WorkbenchError):
    """The request itself is wrong."""

    status = 400


class Unauthenticated(WorkbenchError):
    """No valid credential came with the request."""

    status = 401


class Refused(WorkbenchError):
    """The caller is known and may not do this."""

    status = 403


class NotFound(WorkbenchError):
    """What the request names does not exist, or is not visible to this caller."""

    status = 404


class WrongMethod(WorkbenchError):
    """The endpoint does not take this method; `details.allowed` names those it takes."""

    status = 405


class Conflict(WorkbenchError):
    """The request conflicts with the present state."""

    status = 409


class TooMany(WorkbenchError):
    """The caller sends too many requests; `details.retry_after_seconds` says when to try again."""

    status = 429


class Unavailable(WorkbenchError):
    """Something outside the request failed."""

    status = 503


AWAY = ("NO_SERVER", "NO_REPLY")
"""Codes of calls to which no server has replied. A change may have been made or not."""


class Interrupted(OneLine, KeyboardInterrupt):
    """A person interrupted something, and it has ended. Like other interrupts, it stops what comes after it.

    Args:
        code, message: see `WorkbenchError`.
        shown: what there is to show of it, before the message.
    """

    status: ClassVar[int] = 499

    def __init__(self, code: str, message: str, shown: object = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.shown = shown

    def as_dict(self) -> dict[str, Any]:
        """See `WorkbenchError.as_dict`."""
        return {"code": self.code, "message": self.message, "details": {}, "status": self.status}


def first_within(error: BaseException) -> BaseException:
    """The first error within a group of errors, however deep; another error as it is."""
    return first_within(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def named(error: BaseException) -> str:
    """An error with its class, as `ValueError: bad`; of a group also the first error within it."""
    inside = first_within(error)
    text = f"{type(error).__name__}: {error}"
    return text if inside is error else f"{text}: {type(inside).__name__}: {inside}"


def unreadable_file(file: object, error: OSError | UnicodeDecodeError) -> BadInput:
    """The error for a text file that cannot be read."""
    return BadInput("FILE_UNREADABLE", f"{file} cannot be read: {why_unreadable(error)}. Choose another file.")


def why_unreadable(error: Exception) -> str:
    """Why a text file cannot be read, without its path, for a sentence that names it."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return error.strerror or repr(error) if isinstance(error, OSError) else str(error)


def from_dict(error: Mapping[str, Any]) -> WorkbenchError:
    """Rebuild the error that `as_dict` described, so that a client raises what the server raised.

    Missing values, and values of another type, which only other programs send, are left out.
    """
    family = {cls.status: cls for cls in WorkbenchError.__subclasses__()}
    status, details = error.get("status"), error.get("details")
    cls = family.get(status, WorkbenchError) if isinstance(status, int) else WorkbenchError
    rebuilt = cls(str(error.get("code", "UNKNOWN_ERROR")), str(error.get("message", "The server gave no reason.")))
    rebuilt.hint = _hint(error.get("hint"))
    rebuilt.details = dict(details) if isinstance(details, dict) else {}
    return rebuilt


def _hint(sent: object) -> Hint | None:
    if not isinstance(sent, dict) or not isinstance(arguments := sent.get("arguments", {}), dict):
        return None
    words = [sent.get(name, "") for name in ("operation", "sentence", "typed")]
    return Hint(*words, **arguments) if all(isinstance(word, str) for word in words) and words[1] else None

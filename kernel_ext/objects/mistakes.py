"""Errors of one line, with the next step, for mistakes that Python itself would answer with a traceback.

Each is also the exception that Python's own protocols expect, so that `hasattr`, `in` and loops work as always.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.errors import BadInput, NotFound
from workbench.rules.naming import suggestion

T = TypeVar("T")


class WrongType(BadInput, TypeError):
    """A method was given an argument of a type that it does not take."""


class UnknownField(BadInput, AttributeError):
    """An object has no field or method of this name."""


class NoSuchRow(NotFound, IndexError):
    """A list has no object at this position."""


class FieldReadOnly(BadInput, AttributeError):
    """A field was assigned, which would change nothing in the project."""


class Suggests:
    """An object with which a misspelt attribute is one line that suggests the right one."""

    def _label(self) -> str:
        """Its name in errors."""
        return type(self).__name__.removeprefix("Notebook")

    if not TYPE_CHECKING:  # else a type checker would take every name for known

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):  # a front end looks for methods that show it
                raise AttributeError(name)
            raise unknown_field(self._label(), name, public(self))


class Fixed(Suggests):
    """An object of which nothing can be assigned that would not change the project: only properties with a setter."""

    def __setattr__(self, name: str, value: Any) -> None:
        attribute = getattr(type(self), name, None)
        is_own = name in type(self).__annotations__ and name not in vars(self)  # set by its constructor
        if not (name.startswith("_") or is_own or (isinstance(attribute, property) and attribute.fset is not None)):
            if name not in dir(self):
                raise unknown_field(self._label(), name, public(self))
            raise field_read_only(self._label(), name)
        super().__setattr__(name, value)


def checked(value: T, kind: type | tuple[type, ...], method: str, takes: str) -> T:
    """An argument of a method.

    Raises:
        WrongType: ``INVALID_ARGUMENTS``: it is of another type than the method takes.
    """
    if isinstance(value, kind):
        return value
    raise WrongType("INVALID_ARGUMENTS", f"{method} takes {takes}, not {value!r}.", problems=[])


def public(of: object) -> list[str]:
    """The fields and methods of an object that are for everybody."""
    return [name for name in dir(of) if not name.startswith("_")]


def unknown_field(of: str, name: object, fields: Iterable[str]) -> UnknownField:
    """The error for a field that does not exist, such as ``A task has no field 'titel'. Did you mean title?``."""
    names = list(fields)
    near = suggestion(name, names).rstrip() if isinstance(name, str) else ""
    hint = near or f"There are {', '.join(names)}."
    return UnknownField("UNKNOWN_FIELD", f"{of} has no field {name!r}. {hint}")


def field_read_only(of: str, name: str, hint: str = "Its methods, which Tab lists, do.") -> FieldReadOnly:
    """The error for a field that was assigned; the hint says what would change the project."""
    return FieldReadOnly(
        "FIELD_READ_ONLY", f"{of}.{name} cannot be assigned: that would not change the project. {hint}"
    )


def no_such_row(position: int, count: int) -> NoSuchRow:
    """The error for a position beyond the end of a list."""
    there_are = {0: "it is empty", 1: "it has one object"}.get(count, f"it has {count:,} objects")
    return NoSuchRow("NOT_FOUND", f"The list has no position {position}: {there_are}, counted from 0.")


def not_a_key(of: str, key: object) -> BadInput:
    """The error for what is neither an id nor a name, such as a slice."""
    hint = f"{of}()[0:10] has the first ten" if isinstance(key, slice) else f"{of} lists them"
    return BadInput("INVALID_ARGUMENTS", f"{of}[…] takes an id or a name, not {key!r}. {hint}.", problems=[])

"""What a question of a notebook takes along: values of its variables, its cells, and what went wrong last."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from workbench.cli.chat.attachments import attached, file_part
from workbench.errors import BadInput, NotFound
from workbench.present.inert import fenced, inert
from workbench.rules.plain import NotPlain, Plain
from workbench.rules.tools.results import as_json

ROWS = 200
"""Rows of a table, and items of an array, that a question takes along."""
MOST_CELLS = 1_000
"""Cells that a range of numbers names."""
_NAME = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)(?:\[(\d+)\])?\}")


class Shell(Protocol):
    """IPython's shell, as far as questions look into it."""

    user_ns: dict[str, Any]


def with_values(question: str, names: Mapping[str, Any]) -> str:
    """A question with values in the place of ``{name}``, ``{In[3]}`` and ``{Out[3]}``.

    Braces around anything else stay, as in code; ``{{name}}`` is ``{name}``.
    """

    def value(match: re.Match[str]) -> str:
        name, index = match[1], match[2]
        if name is None:
            return match[0][0]
        if name not in names:
            return match[0]
        try:
            return as_text(names[name][int(index)] if index else names[name], match[0][1:-1])
        except (LookupError, TypeError):
            return match[0]

    return _NAME.sub(value, question) if _has_names(question, names) else question


def completed(
    question: str, shell: Shell, *, files: Sequence[str] = (), cells: Sequence[int] = (), error: bool = False
) -> str:
    """A question with the values that it names, and what it takes along.

    Raises:
        BadInput: ``TOO_MUCH_ATTACHED``, ``FILE_UNREADABLE``. NotFound: ``NO_SUCH_CELL``, ``NO_ERROR``.
    """
    parts = [*(part for number in cells for part in _cell(shell, number)), *map(file_part, files)]
    return attached(with_values(question, shell.user_ns), [*parts, *([_last_error()] if error else [])])


def as_text(value: Any, name: str) -> str:
    """A value as a model reads it: text as it is, others as JSON, else printed; what is cut is said."""
    if isinstance(value, str):
        return value
    plain = Plain(rows=ROWS)
    try:
        text = as_json(plain.of(value, name))
    except NotPlain:
        return inert(repr(value))
    return f"{text} ({'; '.join(plain.cut)})" if plain.cut else text


def _has_names(question: str, names: Mapping[str, Any]) -> bool:
    """Whether a question names a value; one that does not may be full of code, whose double braces stay."""
    return any(match[1] in names for match in _NAME.finditer(question) if match[1])


def _cell(shell: Shell, number: int) -> Iterator[str]:
    """The source of a cell that has run, and its value."""
    sources: Sequence[str] = shell.user_ns.get("In", [])
    if not 0 < number < len(sources) or not sources[number]:
        raise NotFound("NO_SUCH_CELL", f"No cell with the number {number} has run in this kernel.")
    yield f"Cell {number}:\n\n{fenced(sources[number].rstrip(), 'python')}"
    results: Mapping[int, Any] = shell.user_ns.get("Out", {})
    if number in results:
        yield f"Its value:\n\n{fenced(as_text(results[number], f'Out[{number}]'))}"


def _last_error() -> str:
    """What was raised last in this kernel, with its traceback."""
    error = getattr(sys, "last_value", None)
    if not isinstance(error, BaseException):
        raise NotFound("NO_ERROR", "Nothing has failed in this kernel since it started. Leave out --error.")
    return f"The last error:\n\n{fenced(inert(''.join(traceback.format_exception(error)).rstrip()), 'text')}"


def numbers(values: Sequence[str]) -> list[int]:
    """The numbers of cells, as they are typed: 3, or 3-5.

    Raises:
        BadInput: ``BAD_USAGE``.
    """
    found: list[int] = []
    for text in values:
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last < first + MOST_CELLS:
            raise BadInput("BAD_USAGE", f"--cell takes the number of a cell, such as 3, or 3-5; not {text!r}.")
        found += range(first, last + 1)
    return found

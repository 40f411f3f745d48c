"""Tab in calls such as `wb.call("…")` and `wb.tasks(…)`, in SQL, and on the first line of a cell magic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from IPython.core.completer import (
    CompletionContext,
    IPCompleter,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)

from kernel_ext.objects import help as help_of
from kernel_ext.objects.agents import Agent, Persona
from kernel_ext.objects.rows import Kind, Listing
from kernel_ext.objects.tasks import Plan
from kernel_ext.objects.worktrees import Worktree
from workbench.analytics.reports import names
from workbench.errors import WorkbenchError
from workbench.ops import collect
from workbench.services import SERVICES

if TYPE_CHECKING:
    from kernel_ext.objects.rows import Notebook

NAME = re.compile(r"\bwb\.(?:call|help)\(\s*[\"'](\w*)$")
ARGUMENT = re.compile(r"\bwb\.call\(\s*[\"'](\w+)[\"']\s*,(?:[^()]|\([^()]*\))*?(?<![=\w.\"'])(\w*)$")
REPORT = re.compile(r"\bwb\.report\(\s*[\"'](\w*)$")
VALUE = re.compile(r"\bwb\.(\w+)\(([^()]*)\b(\w+)\s*=\s*[\"']([\w./-]*)$")
FILTER = re.compile(r"\bwb\.(\w+)\((?:[^()]*,)?\s*(\w*)$")
FIRST_LINE = re.compile(r"%%(plan|persona|wsql|chat)\s(?:.*\s)?([\w./-]*)$")
OPTION = re.compile(r"\s(--[\w-]*)$")
SQL = re.compile(r"(?:(\w+)\.)?(\w*)$")
SQL_CELL = "%%wsql"
SQL_LINE = re.compile(r"(?:.*=\s*)?%(?:wsql|workbench\s+sql)\s(?:.*\s)?")
PRIORITY = 100.0
NAMED: Mapping[str, Callable[[Notebook], Iterable[str]]] = {
    "persona": lambda session: [one["id"] for one in session.call("get_personas")["personas"]],
    "chat": lambda session: [one["name"] for one in session.call("agent_list")["agents"]],
}
"""What the first word after a magic names."""
VALUES: Mapping[str, Kind[Any]] = {
    **dict.fromkeys(("persona", "persona_id"), Persona.KIND),
    **dict.fromkeys(("agent", "agent_id", "assigned_agent_id"), Agent.KIND),
    **dict.fromkeys(("worktree", "target_worktree", "worktree_name"), Worktree.KIND),
    "plan": Plan.KIND,
}
"""What the value of an argument names."""


class Completion:
    """What a notebook completes.

    Args:
        options: the options of each cell magic.
    """

    def __init__(self, session: Notebook, options: Mapping[str, Iterable[str]]) -> None:
        self._session = session
        self._options = options

        @context_matcher(identifier="workbench", priority=PRIORITY)
        def matcher(context: CompletionContext) -> SimpleMatcherResult:
            return self._matched(context)

        self._matcher = matcher

    def install(self, completer: IPCompleter) -> None:
        """Begin to offer."""
        completer.custom_matchers.append(self._matcher)

    def remove(self, completer: IPCompleter) -> None:
        """Offer no longer."""
        with suppress(ValueError):
            completer.custom_matchers.remove(self._matcher)

    def _matched(self, context: CompletionContext) -> SimpleMatcherResult:
        """The completions for the text before the cursor."""
        text = context.text_until_cursor
        if context.full_text.startswith(SQL_CELL) and context.cursor_line > 0:
            return _in_sql(text, context.full_text)
        if SQL_LINE.match(text):
            option = OPTION.search(text)
            return _offered(option[1], self._options["wsql"], "option") if option else _in_sql(text, text)
        if context.cursor_line == 0 and (found := FIRST_LINE.match(text)):
            return self._in_first_line(found[1], found[2], text)
        if found := VALUE.search(text):
            return self._in_value(*found.groups())
        if (found := FILTER.search(text)) and isinstance(listing := vars(self._session).get(found[1]), Listing):
            return _offered(found[2], [f"{name}=" for name in listing.filters()], "filter")
        return _in_call(text)

    def _in_value(self, called: str, before: str, argument: str, fragment: str) -> SimpleMatcherResult:
        if argument not in VALUES:
            return _offered(fragment, _choices(self._types(called, before).get(argument)), argument)
        kind, keys = VALUES[argument], list[str]()
        with suppress(WorkbenchError):  # the servers do not run
            keys = [str(key) for key in kind.keys(self._session)]
        return _offered(fragment, keys, argument)

    def _types(self, called: str, before: str) -> Mapping[str, Any]:
        """The types of the arguments of a call, by name: of a list's filters, or of an operation's arguments."""
        if isinstance(listing := vars(self._session).get(called), Listing):
            return listing.filters()
        operation = collect(SERVICES).get(next(iter(re.findall(r"\w+", before)), "")) if called == "call" else None
        fields = operation.arguments.model_fields if operation else {}
        return {name: field.annotation for name, field in fields.items()}

    def _in_first_line(self, magic: str, fragment: str, text: str) -> SimpleMatcherResult:
        if fragment.startswith("-"):
            return _offered(fragment, self._options[magic], "option")
        is_first_word = len(text.split()) == 1 + bool(fragment)
        if magic not in NAMED or not is_first_word:
            return _nothing()
        names: list[str] = []
        with suppress(WorkbenchError):  # the servers do not run
            names = list(NAMED[magic](self._session))
        return _offered(fragment, names, magic)


def _in_call(text: str) -> SimpleMatcherResult:
    if found := REPORT.search(text):
        return _offered(found[1], names(), "report")
    operations = collect(SERVICES)
    if found := NAME.search(text):
        about = help_of.subjects() if found[0].startswith("wb.help") else []
        return _offered(found[1], [*about, *operations], "operation")
    if (found := ARGUMENT.search(text)) and found[1] in operations:
        parameters = operations[found[1]].arguments.model_fields
        return _offered(found[2], [f"{name}=" for name in parameters], "argument")
    return _nothing()


def _choices(kind: Any) -> list[str]:
    """The words that a value of a type can be, if these are few."""
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return [one.value for one in kind]
    if get_origin(kind) is Literal:
        return [one for one in get_args(kind) if isinstance(one, str)]
    return [word for one in get_args(kind) for word in _choices(one)]


def _in_sql(text: str, cell: str) -> SimpleMatcherResult:
    """Views, and the columns of those that the query names."""
    found = SQL.search(text)
    assert found is not None
    views = _views()
    if found[1]:
        return _offered(found[2], views.get(found[1], ()), "column")
    named = [name for name in views if re.search(rf"\b{name}\b", cell)]
    columns = dict.fromkeys(column for name in named for column in views[name])
    return _offered(found[2], [*views, *columns], "column or view") if found[2] else _nothing()


@cache
def _views() -> Mapping[str, tuple[str, ...]]:
    """The columns of each view."""
    from workbench.analytics.views import described

    return {view.name: tuple(column.name for column in view.columns) for view in described()}


def _offered(fragment: str, names: Iterable[str], kind: str) -> SimpleMatcherResult:
    completions = [SimpleCompletion(name, type=kind) for name in names if name.startswith(fragment)]
    return {
        "completions": completions,
        "matched_fragment": fragment,
        "suppress": bool(completions),
        "ordered": True,
    }


def _nothing() -> SimpleMatcherResult:
    return {"completions": []}

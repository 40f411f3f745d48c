"""Tab in calls such as `wb.call("…")` and `wb.tasks(…)`, in SQL, and on the first line of a cell magic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from IPython.core.guarded_eval import EVALUATION_POLICIES

from kernel_ext.objects import help as help_of
from kernel_ext.objects.rows import Listing
from workbench.analytics.reports import names
from workbench.analytics.reports.drawing import MARKS
from workbench.analytics.results import LIBRARIES
from workbench.errors import WorkbenchError
from workbench.ops import collect
from workbench.services import SERVICES

if TYPE_CHECKING:
    from kernel_ext.objects.kinds import NotebookSession

ARGUMENT = re.compile(r"\bwb\.call\(\s*[\"'](\w+)[\"']\s*,(?:[^()]|\([^()]*\))*?(?<![=\w.\"'])(\w*)$")
FIRST = re.compile(r"\bwb\.(\w+)\(\s*[\"']([\w./-]*)$")
ID = re.compile(r"\bwb\.(?:task\(\s*|\w+\([^()]*\b(task_id|approval_id|run_id)\s*=\s*)(\d*)$")
KEY = re.compile(r"\bwb\.(\w+)\[\s*(?:[\"']([^\"']*)|(\d*))$")
VALUE = re.compile(r"\bwb\.(\w+)\(([^()]*)\b(\w+)\s*=\s*[\"']([\w./-]*)$")
FIELD = re.compile(r"\bwb\.(\w+)(?:\([^()]*\))?\.(?:sort\(\s*[\"'](\w*)|filter\((?:[^()]*,)?\s*(\w*))$")
FILTER = re.compile(r"\bwb\.(\w+)\((?:[^()]*,)?\s*(\w*)$")
FIRST_LINE = re.compile(r"%%(plan|persona|wsql|chat)\s(?:.*\s)?([\w./-]*)$")
OPTION = re.compile(r"\s(--[\w-]*)$")
SQL = re.compile(r"(?:(\w+)\.)?(\w*)$")
SQL_CELL = "%%wsql"
SQL_LINE = re.compile(r"(?:.*=\s*)?%(?:wsql|workbench\s+sql)\s(?:.*\s)?")
SQL_VALUE = re.compile(r"\s--(as|chart)[\s=]+(\w*)$")
SQL_VALUES: Mapping[str, Iterable[str]] = {"as": LIBRARIES, "chart": MARKS}
"""What the options of a query can be, if these are few words."""
PRIORITY = 100.0
NAMED: Mapping[str, Callable[[NotebookSession], Iterable[str]]] = {
    "persona": lambda session: [one["id"] for one in session.call("get_personas")["personas"]],
    "chat": lambda session: [one["name"] for one in session.call("agent_list")["agents"]],
}
"""What the first word after a magic names."""
VALUES: Mapping[str, str] = {
    **dict.fromkeys(("persona", "persona_id"), "personas"),
    **dict.fromkeys(("agent", "agent_id", "assigned_agent_id"), "agents"),
    **dict.fromkeys(("worktree", "target_worktree", "worktree_name"), "worktrees"),
    "plan": "plans",
    "task_id": "tasks",
    "approval_id": "approvals",
    "run_id": "runs",
    "definition": "definitions",
}
"""The list that has what the value of an argument names."""
FIRSTS: Mapping[str, str] = {"task": "tasks", "graph": "plans", "chat": "definitions"}
"""The list that has what the first argument of a method names."""
WORDS: Mapping[str, Callable[[], Iterable[str]]] = {
    "call": lambda: collect(SERVICES),
    "help": lambda: [*help_of.subjects(), *collect(SERVICES)],
    "report": names,
}
"""What the first argument of a method can be."""

OWN = ("kernel_ext",)
_TRUSTED = EVALUATION_POLICIES["limited"].allowed_getattr_external
"""Modules whose attributes Tab reads although their classes say what a missing one is (`__getattr__`)."""


class Completion:
    """What a notebook completes.

    Args:
        options: the options of each cell magic.
        tabs: those of the panel.
    """

    def __init__(self, session: NotebookSession, options: Mapping[str, Iterable[str]], tabs: Sequence[str]) -> None:
        self._session = session
        self._options = options
        self._words: dict[str, Callable[[], Iterable[str]]] = {**WORDS, "panel": lambda: tabs}

        @context_matcher(identifier="workbench", priority=PRIORITY)
        def matcher(context: CompletionContext) -> SimpleMatcherResult:
            return self._matched(context)

        self._matcher = matcher

    def install(self, completer: IPCompleter) -> None:
        """Begin to offer."""
        completer.custom_matchers.append(self._matcher)
        _TRUSTED.add(OWN)

    def remove(self, completer: IPCompleter) -> None:
        """Offer no longer."""
        with suppress(ValueError):
            completer.custom_matchers.remove(self._matcher)
        _TRUSTED.discard(OWN)

    def _matched(self, context: CompletionContext) -> SimpleMatcherResult:
        """The completions for the text before the cursor."""
        text = context.text_until_cursor
        if context.full_text.startswith(SQL_CELL) and context.cursor_line > 0:
            return _in_sql(text, context.full_text)
        if (context.cursor_line == 0 and text.startswith(SQL_CELL)) or SQL_LINE.match(text):
            return self._in_query(text)
        if context.cursor_line == 0 and (found := FIRST_LINE.match(text)):
            return self._in_first_line(found[1], found[2], text)
        return self._in_python(text)

    def _in_query(self, text: str) -> SimpleMatcherResult:
        """Options of a query and their values; on one line, the query too."""
        if found := SQL_VALUE.search(text):
            return _offered(found[2], SQL_VALUES[found[1]], found[1])
        if found := OPTION.search(text):
            return _offered(found[1], self._options["wsql"], "option")
        return _nothing() if text.startswith(SQL_CELL) else _in_sql(text, text)

    def _in_python(self, text: str) -> SimpleMatcherResult:
        if found := ID.search(text):
            keys = [str(key) for key in self._keys(VALUES[found[1] or "task_id"]) if isinstance(key, int)]
            return _offered(found[2], keys, "id")
        if (found := KEY.search(text)) and hasattr(vars(self._session).get(found[1]), "__getitem__"):
            return self._in_key(*found.groups())
        if found := FIRST.search(text):
            words = self._words[found[1]]() if found[1] in self._words else self._keys(FIRSTS.get(found[1], ""))
            return _offered(found[2], [one for one in words if isinstance(one, str)], found[1])
        if found := VALUE.search(text):
            return self._in_value(*found.groups())
        if (found := FIELD.search(text)) and (listing := self._listing(found[1])):
            fields = listing.fields()
            is_sort = found[2] is not None
            return _offered(found[2] or found[3] or "", fields if is_sort else [f"{one}=" for one in fields], "field")
        if (found := FILTER.search(text)) and (listing := self._listing(found[1])):
            return _offered(found[2], [f"{name}=" for name in listing.filters()], "filter")
        return _in_call(text)

    def _in_key(self, name: str, text: str | None, digits: str | None) -> SimpleMatcherResult:
        """What finds an object of a list: its names, or, without a quotation mark, numbers. Nothing else fits there."""
        keys = self._keys(name)
        if text is None:
            offered = _offered(digits or "", [str(key) for key in keys if isinstance(key, int)], "id")
        else:
            offered = _offered(text, [key for key in keys if isinstance(key, str)], "name")
        return {**offered, "suppress": True}

    def _listing(self, name: str) -> Listing[Any] | None:
        """A live list of the session."""
        found = vars(self._session).get(name)
        return found if isinstance(found, Listing) else None

    def _keys(self, name: str) -> list[Any]:
        """What finds the objects of a list of the session; none if the servers do not run."""
        with suppress(WorkbenchError):
            return list(vars(self._session)[name]._ipython_key_completions_()) if name else []
        return []

    def _in_value(self, called: str, before: str, argument: str, fragment: str) -> SimpleMatcherResult:
        if argument in VALUES:
            return _offered(fragment, [one for one in self._keys(VALUES[argument]) if isinstance(one, str)], argument)
        return _offered(fragment, _choices(self._types(called, before).get(argument)), argument)

    def _types(self, called: str, before: str) -> Mapping[str, Any]:
        """The types of the arguments of a call, by name: of a list's filters, or of an operation's arguments."""
        if listing := self._listing(called):
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
    operations = collect(SERVICES)
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
        return _offered(found[2], views.get(_aliases(cell, views).get(found[1].lower(), found[1]), ()), "column")
    named = [name for name in views if re.search(rf"\b{name}\b", cell, re.IGNORECASE)]
    columns = dict.fromkeys(column for name in named or views for column in views[name])
    return _offered(found[2], [*views, *columns], "column or view") if found[2] else _nothing()


def _aliases(query: str, views: Iterable[str]) -> Mapping[str, str]:
    """The views by the short names that a query gives them: `FROM tasks t`."""
    pattern = rf"\b({'|'.join(views)})\s+(?:as\s+)?(\w+)"
    return {alias.lower(): view.lower() for view, alias in re.findall(pattern, query, re.IGNORECASE)}


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

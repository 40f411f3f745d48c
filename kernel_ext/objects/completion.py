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
from workbench.rules.tasks.plan.draft import KEYS
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
TOOL = re.compile(r"\bwb\.tools\[\s*[\"']([^\"']+)[\"']\s*\]\((?:[^()]|\([^()]*\))*?(?<![=\w.\"'])(\w*)$")
PLAN_CELL = "%%plan"
PLAN_KEY = re.compile(r"(?:^\s*(?:-\s+)?|[{,]\s*)(\w*)$")
PLAN_VALUE = re.compile(r"\b(persona|worktree):\s+([\w-]*)$")
BEGINS = re.compile(r"\b(from|join)\s+$|(?:\b(?:select|where|by|on|and|or|having|distinct)|,)\s*$", re.IGNORECASE)
"""Where a query is about to name a view, or a column."""
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
            return self._match(context)

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

    def _match(self, context: CompletionContext) -> SimpleMatcherResult:
        """The completions for the text before the cursor."""
        text = context.text_until_cursor
        if context.full_text.startswith(SQL_CELL) and context.cursor_line > 0:
            return _in_sql(text, context.full_text)
        if context.full_text.startswith(PLAN_CELL) and context.cursor_line > 0:
            return self._in_plan(text)
        if (context.cursor_line == 0 and text.startswith(SQL_CELL)) or SQL_LINE.match(text):
            return self._in_query(text)
        if context.cursor_line == 0 and (match := FIRST_LINE.match(text)):
            return self._in_first_line(match[1], match[2], text)
        return self._in_python(text)

    def _in_query(self, text: str) -> SimpleMatcherResult:
        """Options of a query and their values; on one line, the query too."""
        if match := SQL_VALUE.search(text):
            return _offer(match[2], SQL_VALUES[match[1]], match[1])
        if match := OPTION.search(text):
            return _offer(match[1], self._options["wsql"], "option")
        return _nothing() if text.startswith(SQL_CELL) else _in_sql(text, text)

    def _in_python(self, text: str) -> SimpleMatcherResult:
        if match := ID.search(text):
            keys = [str(key) for key in self._keys(VALUES[match[1] or "task_id"]) if isinstance(key, int)]
            return _offer(match[2], keys, "id")
        if match := TOOL.search(text):
            return self._in_tool(*match.groups())
        if (match := KEY.search(text)) and hasattr(vars(self._session).get(match[1]), "__getitem__"):
            return self._in_key(*match.groups())
        if match := FIRST.search(text):
            words = self._words[match[1]]() if match[1] in self._words else self._keys(FIRSTS.get(match[1], ""))
            return _offer(match[2], [word for word in words if isinstance(word, str)], match[1])
        if match := VALUE.search(text):
            return self._in_value(*match.groups())
        if (match := FIELD.search(text)) and (listing := self._listing(match[1])):
            fields = listing.fields()
            is_sort = match[2] is not None
            return _offer(match[2] or match[3] or "", fields if is_sort else [f"{word}=" for word in fields], "field")
        if (match := FILTER.search(text)) and (listing := self._listing(match[1])):
            return _offer(match[2], [f"{name}=" for name in listing.filters()], "filter")
        return _in_call(text)

    def _in_plan(self, text: str) -> SimpleMatcherResult:
        """The keys of a plan and its tasks, and what some of them name; no word of Python fits there."""
        if match := PLAN_VALUE.search(text):
            result = _offer(match[2], [str(key) for key in self._keys(VALUES[match[1]])], match[1])
        elif match := PLAN_KEY.search(text):
            keys = ("plan", "tasks") if text == match[1] else (*KEYS, "subtasks")
            result = _offer(match[1], [f"{key}:" for key in keys], "key")
        else:
            result = _nothing()
        return {**result, "suppress": True}

    def _in_tool(self, name: str, fragment: str) -> SimpleMatcherResult:
        """The arguments of a tool."""
        parameters: Mapping[str, Any] = {}
        with suppress(WorkbenchError):  # there is none, or the servers do not run
            parameters = self._session.call("get_tool", name=name)["parameters"].get("properties", {})
        return _offer(fragment, [f"{parameter}=" for parameter in parameters], "argument")

    def _in_key(self, name: str, text: str | None, digits: str | None) -> SimpleMatcherResult:
        """What finds an object of a list: its names, or, without a quotation mark, numbers. Nothing else fits there."""
        keys = self._keys(name)
        if text is None:
            result = _offer(digits or "", [str(key) for key in keys if isinstance(key, int)], "id")
        else:
            result = _offer(text, [key for key in keys if isinstance(key, str)], "name")
        return {**result, "suppress": True}

    def _listing(self, name: str) -> Listing[Any] | None:
        """A live list of the session."""
        listing = vars(self._session).get(name)
        return listing if isinstance(listing, Listing) else None

    def _keys(self, name: str) -> list[Any]:
        """What finds the objects of a list of the session; none if the servers do not run."""
        with suppress(WorkbenchError):
            return list(vars(self._session)[name]._ipython_key_completions_()) if name else []
        return []

    def _in_value(self, method: str, before: str, argument: str, fragment: str) -> SimpleMatcherResult:
        if argument in VALUES:
            return _offer(fragment, [key for key in self._keys(VALUES[argument]) if isinstance(key, str)], argument)
        return _offer(fragment, _choices(self._types(method, before).get(argument)), argument)

    def _types(self, method: str, before: str) -> Mapping[str, Any]:
        """The types of the arguments of a call, by name: of a list's filters, or of an operation's arguments."""
        if listing := self._listing(method):
            return listing.filters()
        operation = collect(SERVICES).get(next(iter(re.findall(r"\w+", before)), "")) if method == "call" else None
        fields = operation.arguments.model_fields if operation else {}
        return {name: field.annotation for name, field in fields.items()}

    def _in_first_line(self, magic: str, fragment: str, text: str) -> SimpleMatcherResult:
        if fragment.startswith("-"):
            return _offer(fragment, self._options[magic], "option")
        is_first_word = len(text.split()) == 1 + bool(fragment)
        if magic not in NAMED or not is_first_word:
            return _nothing()
        names: list[str] = []
        with suppress(WorkbenchError):  # the servers do not run
            names = list(NAMED[magic](self._session))
        return _offer(fragment, names, magic)


def _in_call(text: str) -> SimpleMatcherResult:
    operations = collect(SERVICES)
    if (match := ARGUMENT.search(text)) and match[1] in operations:
        parameters = operations[match[1]].arguments.model_fields
        return _offer(match[2], [f"{name}=" for name in parameters], "argument")
    return _nothing()


def _choices(kind: Any) -> list[str]:
    """The words that a value of a type can be, if these are few."""
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return [choice.value for choice in kind]
    if get_origin(kind) is Literal:
        return [choice for choice in get_args(kind) if isinstance(choice, str)]
    return [word for choice in get_args(kind) for word in _choices(choice)]


def _in_sql(text: str, cell: str) -> SimpleMatcherResult:
    """Views, and the columns of those that the query names."""
    match = SQL.search(text)
    assert match is not None
    views = _views()
    if match[1]:
        return _offer(match[2], views.get(_aliases(cell, views).get(match[1].lower(), match[1]), ()), "column")
    mentioned = [name for name in views if re.search(rf"\b{name}\b", cell, re.IGNORECASE)]
    columns = dict.fromkeys(column for name in mentioned or views for column in views[name])
    if (begins := BEGINS.search(text)) and not match[2]:
        return _offer("", views if begins[1] else [*columns, *views], "column or view")
    return _offer(match[2], [*views, *columns], "column or view") if match[2] else _nothing()


def _aliases(query: str, views: Iterable[str]) -> Mapping[str, str]:
    """The views by the short names that a query gives them: `FROM tasks t`."""
    pattern = rf"\b({'|'.join(views)})\s+(?:as\s+)?(\w+)"
    return {alias.lower(): view.lower() for view, alias in re.findall(pattern, query, re.IGNORECASE)}


@cache
def _views() -> Mapping[str, tuple[str, ...]]:
    """The columns of each view."""
    from workbench.analytics.views import described

    return {view.name: tuple(column.name for column in view.columns) for view in described()}


def _offer(fragment: str, names: Iterable[str], kind: str) -> SimpleMatcherResult:
    completions = [SimpleCompletion(name, type=kind) for name in names if name.startswith(fragment)]
    return {
        "completions": completions,
        "matched_fragment": fragment,
        "suppress": bool(completions),
        "ordered": True,
    }


def _nothing() -> SimpleMatcherResult:
    return {"completions": []}

"""The draft of a plan, as parsed from either format, and the checks that make a plan of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from workbench.errors import BadInput
from workbench.rules.access import check_worktree_name
from workbench.rules.reasons import reason
from workbench.rules.tasks.lifecycle import TREE_DEPTH
from workbench.rules.tasks.plan.model import LINE, Plan, PlannedTask, Ticked, find_cycle

M = TypeVar("M", bound=BaseModel)

INHERITED = ("persona", "worktree")
"""Fields that a subtask inherits from the task it is written in."""

KEYS = tuple(name for name in PlannedTask.model_fields if name != "line")
"""The fields of a task in a text."""
LISTS = frozenset({"after", "no_retry"})
"""Fields that are lists of words."""
TEXTS = ("title", "description", "session", "run", "check", "no_retry", "context_ref")
"""Free text fields, which may not contain control characters; names and metadata have checks of their own."""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Unicode's category Cc without tab and line ends: databases cannot store NUL, and terminals execute others."""


class Problems:
    """Collects the problems of a plan, so that all are reported at once."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []

    def add(self, line: int, reason: str) -> None:
        """Add a problem; lines count from 1."""
        self.found.append({"line": line, "reason": reason})

    def validated(self, model: type[M], values: Mapping[str, Any], line: int) -> M | None:
        """A model of these values; if any is invalid, add a problem for each and return None."""
        try:
            return model.model_validate(values)
        except ValidationError as error:
            self._refuse(error, line)
            return None

    def task(self, values: Mapping[str, Any], line: int) -> PlannedTask:
        """A task of these values. Invalid values are problems and left out (name, title, persona: empty)."""
        try:
            return PlannedTask.model_validate(values)
        except ValidationError as error:
            invalid = self._refuse(error, line)
            valid = {key: value for key, value in values.items() if key not in invalid}
            missing = {"name", "title", "persona"} - valid.keys()
            task = PlannedTask.model_validate(valid | dict.fromkeys(missing, "x"))
            return task.model_copy(update=dict.fromkeys(missing, ""))

    def _refuse(self, error: ValidationError, line: int) -> set[int | str]:
        """Add a problem for each error; return the invalid fields."""
        found = error.errors(include_url=False)
        for one in found:
            place = ".".join(map(str, one["loc"]))
            is_no_list = one["type"] == "list_type" and place in LISTS
            why = "must be a list of names, like [first, second]" if is_no_list else reason(one)
            if place in ("run.str", "run.list[str]") and one["type"] in ("string_type", "list_type"):
                place, why = (
                    "run",
                    "must be a command, or a list of words; put what YAML takes for something else in quotes",
                )
            if f"{place}: {why}" not in [problem["reason"] for problem in self.found if problem["line"] == line]:
                self.add(line, f"{place}: {why}")
        return {one["loc"][0] for one in found}

    def raise_if_any(self) -> None:
        """Refuse the plan if it has problems.

        Raises:
            BadInput: ``PLAN_INVALID`` with `details.problems`, each a line and a reason.
        """
        if not self.found:
            return
        self.found.sort(key=lambda p: (p["line"], p["reason"]))
        listed = "\n".join(f"  line {p['line']}: {p['reason']}" for p in self.found[:20])
        raise BadInput(
            "PLAN_INVALID", f"The plan has problems; nothing was created or changed.\n{listed}", problems=self.found
        )


@dataclass(frozen=True)
class TaskEntry:
    """A task as it was written."""

    fields: dict[str, Any]
    line: int
    ticked: bool = False

    def under(self, above: TaskEntry | None, problems: Problems) -> TaskEntry:
        """The same task as a subtask of `above`, with its persona and worktree unless it has its own."""
        if above is None:
            return self
        if "parent" in self.fields:
            problems.add(self.line, "it is a subtask by its position, so it cannot have `parent` too; leave one out")
        given = {key: above.fields[key] for key in INHERITED if key in above.fields}
        if "name" in above.fields:
            given["parent"] = above.fields["name"]
        return TaskEntry({**given, **self.fields}, self.line, self.ticked)


@dataclass(frozen=True)
class PlanDraft:
    """A plan as it was written, not checked yet."""

    entries: list[TaskEntry]
    line: int = 1
    name: dict[str, Any] = field(default_factory=dict)
    """``{"plan": …, "budget": …}``, unchecked; without what the text does not give."""
    workplace: dict[str, Any] | None = None
    """The keys of a workplace, checked; None if the text cannot state them."""


def unknown_key(key: str, known: Sequence[str]) -> str:
    """The problem with an unknown key."""
    return f"unknown key {key!r}; the known keys are {', '.join(known)}"


def checked(draft: PlanDraft, problems: Problems, default_name: str, personas: Collection[str] | None) -> Plan:
    """Check a draft and return it as a plan, if it has no problems.

    Raises:
        BadInput: ``PLAN_INVALID``.
    """
    tasks = [_task(entry, problems) for entry in draft.entries if not entry.ticked]
    ticked = [item for entry in draft.entries if entry.ticked and (item := _ticked(entry, problems))]
    names = {str(entry.fields.get("name")) for entry in draft.entries}
    _check_names([*tasks, *ticked], problems)
    _check_order(tasks, names, problems)
    _check_parents(tasks, names, problems)
    _check_personas_and_worktrees(tasks, personas, problems)
    values = {"plan": default_name, **draft.name, "tasks": tasks, "ticked": ticked}
    if draft.workplace != {}:
        values["workplace"] = draft.workplace
    plan = problems.validated(Plan, values, draft.line)
    problems.raise_if_any()
    assert plan is not None
    return plan


def _task(entry: TaskEntry, problems: Problems) -> PlannedTask:
    for key in TEXTS:
        if control := CONTROL.search(_text(entry.fields.get(key))):
            code = f"U+{ord(control[0]):04X}"
            problems.add(entry.line, f"{key}: it contains the control character {code}; leave it out")
    return problems.task({**entry.fields, LINE: entry.line}, entry.line)


def _text(value: Any) -> str:
    """The text in an unchecked field: a string or a list of strings; empty for anything else."""
    parts = value if isinstance(value, list) else [value]
    return " ".join(part for part in parts if isinstance(part, str))


def _ticked(entry: TaskEntry, problems: Problems) -> Ticked | None:
    return problems.validated(Ticked, {"name": entry.fields.get("name"), LINE: entry.line}, entry.line)


def _check_names(items: Sequence[PlannedTask | Ticked], problems: Problems) -> None:
    first: dict[str, int] = {}
    for item in sorted((item for item in items if item.name), key=lambda item: item.line):
        if item.name in first:
            problems.add(item.line, f"the name {item.name!r} is taken by line {first[item.name]}")
        first.setdefault(item.name, item.line)


def _check_order(tasks: Sequence[PlannedTask], names: Collection[str], problems: Problems) -> None:
    for task in tasks:
        for other in dict.fromkeys(task.after):
            if other == task.name:
                problems.add(task.line, f"{task.name!r} comes after itself")
            elif other not in names:
                problems.add(task.line, f"{_called(task)} comes after {other!r}, which is not in the plan")
    edges = {task.name: [on for on in task.after if on != task.name] for task in reversed(tasks) if task.name}
    _check_cycle(tasks, edges, "the tasks wait for each other", problems)


def _called(task: PlannedTask) -> str:
    return repr(task.name) if task.name else "this task"


def _check_parents(tasks: Sequence[PlannedTask], names: Collection[str], problems: Problems) -> None:
    for task in tasks:
        if task.parent == task.name:
            problems.add(task.line, f"{task.name!r} is part of itself")
        elif task.parent is not None and task.parent not in names:
            problems.add(task.line, f"{_called(task)} is part of {task.parent!r}, which is not in the plan")
    edges = {task.name: [task.parent] for task in reversed(tasks) if task.parent and task.name not in ("", task.parent)}
    if not _check_cycle(tasks, edges, "the tasks are parts of each other", problems):
        above = {name: parent for name, (parent,) in edges.items()}
        _check_depth(tasks, above, problems)
        _check_held_back(tasks, above, problems)


def _check_held_back(tasks: Sequence[PlannedTask], above: Mapping[str, str], problems: Problems) -> None:
    """A subtask waits for what the tasks above it come after, but for their own subtasks: that may not be a cycle."""

    def chain(name: str) -> list[str]:
        names = [name]
        while names[-1] in above and len(names) <= TREE_DEPTH:
            names.append(above[names[-1]])
        return names

    after = {task.name: [on for on in task.after if on != task.name] for task in reversed(tasks) if task.name}
    if find_cycle(after) is not None:
        return
    chains = {name: chain(name) for name in after}
    edges = {
        name: [
            *after[name],
            *(on for over in names[1:] for on in after.get(over, ()) if over not in chains.get(on, ())),
        ]
        for name, names in chains.items()
    }
    _check_cycle(tasks, edges, "the tasks wait for each other, as a subtask waits for what its parent does", problems)


def _check_cycle(
    tasks: Sequence[PlannedTask], edges: Mapping[str, Sequence[str]], reason: str, problems: Problems
) -> bool:
    in_text = {task.name: edges[task.name] for task in tasks if task.name in edges}
    cycle = find_cycle(in_text)
    if cycle:
        line = next(task.line for task in tasks if task.name == cycle[0])
        problems.add(line, f"{reason}: {' → '.join(cycle)}")
    return cycle is not None


def _check_depth(tasks: Sequence[PlannedTask], above: Mapping[str, str], problems: Problems) -> None:
    for task in tasks:
        at, depth = task.name, 1
        while at in above and depth <= TREE_DEPTH:
            at, depth = above[at], depth + 1
        if depth > TREE_DEPTH:
            problems.add(task.line, f"{task.name!r} has more than {TREE_DEPTH - 1} tasks above it")


def _check_personas_and_worktrees(
    tasks: Sequence[PlannedTask], personas: Collection[str] | None, problems: Problems
) -> None:
    for task in tasks:
        if personas is not None and task.persona and task.persona.lower() not in personas:
            known = ", ".join(sorted(personas))
            problems.add(task.line, f"unknown persona {task.persona!r}; the known personas are {known}")
        if task.worktree is not None:
            try:
                check_worktree_name(task.worktree)
            except BadInput as error:
                problems.add(task.line, f"worktree {task.worktree!r}: {error.message}")

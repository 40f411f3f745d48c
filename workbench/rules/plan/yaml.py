"""Plans: YAML text to a checked list of tasks, or every problem with its line.

```yaml
plan: penguins
tasks:
  - name: clean            # unique within the plan
    title: Clean the table
    persona: implementer
    description: …         # optional, as is everything below
    priority: 900
    worktree: report
    run: python clean.py   # a string for /bin/sh -c, or a list
    max_retries: 2
    lease_seconds: 60
    after: [other]
```
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from workbench.errors import BadInput
from workbench.rules.access import check_worktree_name
from workbench.rules.wire import DEPTH_LIMIT

NOT_YAML = (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What PyYAML raises; the last ones for values that do not fit their tag, such as `!!int ""`."""

_LINE = "\0line"

Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class PlannedTask(BaseModel):
    """One task of a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    title: str = Field(min_length=1, max_length=200)
    persona: str = Field(min_length=1, max_length=100)
    description: str = Field("", max_length=100_000)
    priority: int = Field(500, ge=-1_000_000, le=1_000_000)
    worktree: str | None = Field(None, max_length=50)
    run: str | list[str] | None = Field(None, min_length=1)
    max_retries: int | None = Field(None, ge=0, le=100)
    lease_seconds: float | None = Field(None, gt=0, le=86_400)
    after: list[Name] = Field([], max_length=1_000)
    context_ref: str | None = Field(None, max_length=1_000)
    metadata: dict[str, JsonValue] = {}
    line: int = Field(0, alias=_LINE, description="Where the task begins in the text; filled in by the parser.")


class Plan(BaseModel):
    """A named list of tasks whose dependencies exist and have no cycle."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plan: Name
    tasks: list[PlannedTask]

    @property
    def worktrees(self) -> list[str]:
        """The branches of work, in order of appearance."""
        return list(dict.fromkeys(task.worktree for task in self.tasks if task.worktree))


class Problems:
    """Collects what is wrong, so that a plan is refused once, with everything."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []

    def add(self, line: int, reason: str) -> None:
        """Note a problem; lines count from 1."""
        self.found.append({"line": line, "reason": reason})

    def raise_if_any(self) -> None:
        """Refuse the plan as a whole.

        Raises:
            BadInput: ``PLAN_INVALID`` with `details.problems`, each a line and a reason.
        """
        if not self.found:
            return
        self.found.sort(key=lambda p: (p["line"], p["reason"]))
        listed = "\n".join(f"  line {p['line']}: {p['reason']}" for p in self.found[:20])
        raise BadInput("PLAN_INVALID", f"The plan has problems; nothing was created.\n{listed}", problems=self.found)


def parse(text: str, *, default_name: str = "plan", personas: Collection[str] | None = None) -> Plan:
    """Read a plan; if `personas` is given, its tasks may name no others.

    Raises:
        BadInput: ``PLAN_INVALID``.
    """
    problems = Problems()
    document = _compose(text, problems)
    raw, line_of = _entries(document, problems)
    tasks = [task for index, entry in enumerate(raw) if (task := _task(entry, line_of[index], problems))]
    _check_names(tasks, {str(entry.get("name")) for entry in raw if isinstance(entry, _Mapping)}, problems)
    _check_places(tasks, personas, problems)
    try:
        plan = Plan(plan=document.get("plan", default_name), tasks=tasks)
    except ValidationError as error:
        for reason in _reasons(error):
            problems.add(document.line, reason)
    problems.raise_if_any()
    return plan


def rename(plan: Plan, name: str) -> Plan:
    """The same plan under another name.

    Raises:
        BadInput: ``PLAN_INVALID``.
    """
    try:
        return Plan(plan=name, tasks=plan.tasks)
    except ValidationError as error:
        raise BadInput("PLAN_INVALID", f"{name!r} is no name for a plan: {_reasons(error)[0]}.") from None


def in_order(plan: Plan) -> list[PlannedTask]:
    """The tasks so that each comes after what it waits for, otherwise as written."""
    order = TopologicalSorter({task.name: task.after for task in plan.tasks})
    place = {task.name: at for at, task in enumerate(plan.tasks)}
    order.prepare()
    names: list[str] = []
    while order.is_active():
        ready = sorted(order.get_ready(), key=place.__getitem__)
        names.extend(ready)
        order.done(*ready)
    return [plan.tasks[place[name]] for name in names]


def find_cycle(edges: Mapping[str, Sequence[str]]) -> list[str] | None:
    """A cycle in a graph of `node -> nodes it waits for`, first node repeated at the end, or None."""
    finished: set[str] = set()
    for start in edges:
        if start in finished:
            continue
        path, on_path = [start], {start}
        stack = [iter(edges[start])]
        while stack:
            following = next((n for n in stack[-1] if n in edges and n not in finished), None)
            if following is None:
                stack.pop()
                done = path.pop()
                on_path.discard(done)
                finished.add(done)
            elif following in on_path:
                return [*path[path.index(following) :], following]
            else:
                path.append(following)
                on_path.add(following)
                stack.append(iter(edges[following]))
    return None


class _Mapping(dict[str, Any]):
    """A mapping that knows the line it begins in."""

    line = 1


def _compose(text: str, problems: Problems) -> _Mapping:
    try:
        document = yaml.load(text, Loader=_LineLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.add(mark.line + 1 if mark else 1, f"not YAML: {error.problem or error.context}")
    except NOT_YAML as error:
        problems.add(1, f"not YAML: {error}")
    else:
        if isinstance(document, _Mapping):
            return document
        problems.add(1, "a plan is a mapping with `plan:` and `tasks:`")
    problems.raise_if_any()
    raise AssertionError("unreachable")


def _entries(document: _Mapping, problems: Problems) -> tuple[list[Any], list[int]]:
    for key in document.keys() - {"plan", "tasks"}:
        problems.add(document.line, f"unknown key {key!r}; a plan has `plan` and `tasks`")
    entries = document.get("tasks")
    if not isinstance(entries, list) or not entries:
        problems.add(document.line, "`tasks` must be a list with at least one task")
        entries = []
    lines = [entry.line if isinstance(entry, _Mapping) else document.line for entry in entries]
    return entries, lines


def _task(entry: Any, line: int, problems: Problems) -> PlannedTask | None:
    if not isinstance(entry, dict):
        problems.add(line, "a task is a mapping with at least name, title and persona")
        return None
    try:
        return PlannedTask.model_validate({**entry, _LINE: line})
    except ValidationError as error:
        for reason in _reasons(error):
            problems.add(line, reason)
        return None


def _check_places(tasks: Sequence[PlannedTask], personas: Collection[str] | None, problems: Problems) -> None:
    for task in tasks:
        if personas is not None and task.persona.lower() not in personas:
            known = ", ".join(sorted(personas))
            problems.add(task.line, f"unknown persona {task.persona!r}; there are {known}")
        if task.worktree is not None:
            try:
                check_worktree_name(task.worktree)
            except BadInput as error:
                problems.add(task.line, f"worktree {task.worktree!r}: {error.message}")


def _reasons(error: ValidationError) -> list[str]:
    return [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)]


def _check_names(tasks: Sequence[PlannedTask], said: Collection[str], problems: Problems) -> None:
    known: dict[str, PlannedTask] = {}
    for task in tasks:
        if task.name in known:
            problems.add(task.line, f"the name {task.name!r} is taken by line {known[task.name].line}")
        known.setdefault(task.name, task)
    for task in tasks:
        for other in task.after:
            if other == task.name:
                problems.add(task.line, f"{task.name!r} comes after itself")
            elif other not in said:
                problems.add(task.line, f"{task.name!r} comes after {other!r}, which is not in the plan")
    edges = {t.name: [o for o in t.after if o != t.name] for t in known.values()}
    if cycle := find_cycle(edges):
        problems.add(known[cycle[0]].line, "the tasks wait for each other: " + " → ".join(cycle))


class _LineLoader(yaml.SafeLoader):
    """Safe YAML whose mappings know their line and refuse a key that is given twice.

    Aliases are refused: a few lines of them can stand for billions of nodes.
    """

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed in a plan", mark)
        if self._depth == DEPTH_LIMIT:
            raise yaml.composer.ComposerError(None, None, "it is nested too deeply", mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _mapping(loader: _LineLoader, node: yaml.MappingNode) -> _Mapping:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key is a word", key.start_mark)
        if key.value in seen:
            raise yaml.constructor.ConstructorError(None, None, f"the key {key.value!r} is given twice", key.start_mark)
        seen.add(key.value)
    made = _Mapping((str(key), value) for key, value in loader.construct_mapping(node, deep=True).items())
    made.line = node.start_mark.line + 1
    return made


_LineLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)

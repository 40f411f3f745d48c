"""Plans as YAML.

```yaml
plan: penguins
tasks:
  - name: clean            # unique within the plan
    title: Clean the table
    persona: implementer
    description: …         # optional, as is everything below
    priority: 900
    due: 2026-12-31        # the day by which it is to be done
    worktree: report
    session: …             # id or name
    run: python clean.py   # a string for /bin/sh -c, or a list
    check: pytest -q       # must pass on what was made; also {run, repeats, seconds, files, hide}
    done_when: changed     # or checked, or said
    needs: {gpu: 1, vram: 12G, exclusive: true, cpu: 4, memory: 8G, license: matlab}
    budget: 5usd           # with its subtasks; also 100k tokens, 3 attempts, {usd: 5, tokens: 100000}
    max_retries: 2
    no_retry: [ValueError]
    lease_seconds: 60
    after: [other]
    on_failure: cancel     # when `other` fails or is cancelled: block, cancel or ignore
    parent: whole          # the task it is part of
    subtasks:              # its subtasks, which inherit its persona and worktree
      - …
```
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from yaml import SafeLoader

from workbench.errors import BadInput
from workbench.rules import workplace, yaml_text
from workbench.rules.tasks.plan.draft import KEYS, PlanDraft, Problems, TaskEntry, unknown_key
from workbench.rules.tasks.plan.model import TERMS, Plan, PlannedTask

_KEYS = (*KEYS, "subtasks")


class Mapping(dict[str, Any]):
    """A mapping with the line in which it begins."""

    def __init__(self, line: int) -> None:
        self.line = line


def read(text: str, problems: Problems) -> PlanDraft:
    """Parse YAML to a draft."""
    document = load(text, problems)
    if not isinstance(document, Mapping):
        if not problems.found:
            text = "a plan is a mapping with `plan:` and `tasks:`, or a Markdown checklist of `- [ ] Do it` items"
            problems.add(1, text)
        problems.raise_if_any()
    for key in document.keys() - {"plan", "tasks", "budget", *TERMS, *workplace.KEYS}:
        known = ", ".join(("budget", *TERMS, *workplace.KEYS))
        problems.add(document.line, f"unknown key {key!r}; a plan has `plan`, `tasks` and the keys {known}")
    terms = {key: document[key] for key in TERMS if key in document}
    entries = [
        replace(entry, fields={**terms, **entry.fields})
        for entry in _entries(document.get("tasks"), "tasks", document.line, None, problems)
    ]
    name = {key: document[key] for key in ("plan", "budget") if key in document}
    return PlanDraft(entries, document.line, name, _workplace(document, problems))


def _workplace(document: Mapping, problems: Problems) -> dict[str, Any]:
    stated = {key: _plain(document[key]) for key in workplace.KEYS if key in document}
    try:
        return workplace.as_json(workplace.parse(stated, "its workplace"))
    except BadInput as error:
        problems.add(document.line, error.message.rstrip("."))
        return {}


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def load(text: str, problems: Problems) -> Any:
    """Parse YAML; if it is invalid, add a problem and return None."""
    try:
        return yaml_text.load(text, Mapping, SafeLoader)
    except yaml_text.InvalidYaml as error:
        problems.add(error.line or 1, f"not YAML: {error}")
    return None


def write(plan: Plan) -> str:
    """Write a plan as text that parses to the same plan."""
    budget = {"budget": plan.budget} if plan.budget else {}
    tasks = [_fields(task) for task in plan.tasks]
    return yaml_text.write({"plan": plan.plan, **budget, **(plan.workplace or {}), "tasks": tasks})


def _fields(task: PlannedTask) -> dict[str, Any]:
    return task.model_dump(mode="json", exclude={"line"}, exclude_defaults=True)


def _entries(tasks: Any, key: str, line: int, above: TaskEntry | None, problems: Problems) -> Iterator[TaskEntry]:
    """The tasks of a list, each followed by its subtasks."""
    if not isinstance(tasks, list) or not tasks:
        problems.add(line, f"`{key}` must be a list with at least one task")
        return
    for one in tasks:
        if not isinstance(one, Mapping):
            problems.add(line, "a task is a mapping with at least name, title and persona")
            continue
        for unknown in (key for key in one if key not in _KEYS):
            problems.add(one.line, unknown_key(unknown, _KEYS))
        fields = {key: one[key] for key in KEYS if key in one}
        entry = TaskEntry(fields, one.line).under(above, problems)
        yield entry
        if "subtasks" in one:
            yield from _entries(one["subtasks"], "subtasks", one.line, entry, problems)

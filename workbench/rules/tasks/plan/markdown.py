"""Plans as Markdown checklists.

```markdown
---
plan: penguins                   # default: from the title; persona and worktree here apply to all tasks
persona: implementer
---
# Penguins

- [ ] Clean the table {name=clean priority=900 run="python clean.py"}
- [x] Ask for the data
- [ ] Write it up {after=clean}
  worktree: report

  The description: what is indented below.

  1. [ ] Draw the pictures
  2. [ ] Choose one {persona=reviewer}
```

An item with a box is a task. Its name is the attribute `name`, else its title's words joined by dashes. Items inside it
are its subtasks; they inherit its persona and worktree. In a numbered list, each item with its subtasks comes after the
one before it. A ticked item is left out, and items after it do not wait for it. Headings, other text that is not
indented, and comments are ignored. `attributes` describes the attributes of an item.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from textwrap import dedent
from typing import Any

from workbench.rules.tasks.plan import attributes
from workbench.rules.tasks.plan.draft import INHERITED, PlanDraft, Problems, TaskEntry
from workbench.rules.tasks.plan.items import ItemReader, PlanItem, has_items, is_text, slug
from workbench.rules.tasks.plan.model import Plan, PlannedTask
from workbench.rules.tasks.plan.yaml import Mapping, load

EDGES = 20_000
"""How many dependencies the numbered lists of one plan may create."""

_YAML = re.compile(r"""^["']?tasks["']?[ \t]*:""", re.MULTILINE)
_FRONT = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


def looks_like(text: str) -> bool:
    """Whether a text is a checklist rather than YAML: it has items with boxes, and no `tasks:`."""
    return has_items(text) and not _YAML.search(text) and not text.lstrip().startswith("{")


def read(text: str, problems: Problems) -> PlanDraft:
    """Parse a checklist to a draft."""
    front = _FRONT.match(text)
    defaults = _front_matter(front[1], problems) if front else {}
    reader = ItemReader(problems)
    start = front[0].count("\n") if front else 0
    for number, line in enumerate(text.split("\n")[start:], start + 1):
        reader.line(number, line)
    reader.end()
    if not reader.top and not problems.found:
        problems.add(1, "a checklist needs items such as `- [ ] Do it {persona=…}`")
    _chain_numbered(reader.top, problems)
    above = {key: defaults[key] for key in INHERITED if key in defaults}
    entries = [entry for item in reader.top for entry in _entries(item, None, above, problems)]
    named = {"plan": defaults["plan"]} if "plan" in defaults else _named(reader.title, problems)
    named |= {"budget": defaults["budget"]} if "budget" in defaults else {}
    return PlanDraft(entries, name=named)


def write(plan: Plan, completed: Collection[str] = ()) -> str:
    """Write a plan as text that parses to the same plan, with the boxes of `completed` tasks ticked."""
    parts: dict[str | None, list[PlannedTask]] = {}
    for task in plan.tasks:
        parts.setdefault(task.parent, []).append(task)

    def under(above: PlannedTask | None, margin: str) -> Iterator[str]:
        for task in parts.get(above.name if above else None, ()):
            box = "x" if task.name in completed else " "
            yield _indented(_written(task, above, box), margin)
            yield from under(task, margin + "  ")

    budget = f"budget: {json.dumps(plan.budget)}\n" if plan.budget else ""
    return f'---\nplan: "{plan.plan}"\n{budget}---\n# {plan.plan}\n\n' + "".join(under(None, ""))


def _front_matter(text: str, problems: Problems) -> dict[str, Any]:
    fields = load("\n" + text, problems)
    if fields is None:
        return {}
    if not isinstance(fields, Mapping):
        problems.add(1, "the front matter must be a mapping such as `plan: name`")
        return {}
    for key in fields.keys() - {"plan", "budget", *INHERITED}:
        problems.add(
            fields.line, f"unknown key {key!r}; the front matter may have plan, budget, {' and '.join(INHERITED)}"
        )
    return fields


def _named(title: tuple[int, str] | None, problems: Problems) -> dict[str, Any]:
    if title is None:
        return {}
    line, text = title
    if not slug(text):
        problems.add(line, "the title has no letters to make a name from; name the plan in front matter: `plan: name`")
    return {"plan": slug(text) or "plan"}


def _entries(
    item: PlanItem, above: TaskEntry | None, defaults: dict[str, Any], problems: Problems
) -> Iterator[TaskEntry]:
    """An item and the items inside it, as tasks."""
    fields = (defaults if above is None else {}) | {"name": item.name, "title": item.title} | item.attributes
    if description := dedent("\n".join(item.text)).strip():
        if "description" in item.attributes:
            problems.add(item.line, "the description is given twice")
        fields["description"] = description
    if not item.name:
        problems.add(item.line, "the title has no letters to make a name from; add {name=…}")
        fields["name"] = f"line-{item.line}"
    entry = TaskEntry(fields, item.line, item.ticked).under(above, problems)
    yield entry
    for inner in item.items:
        yield from _entries(inner, entry, defaults, problems)


def _chain_numbered(items: list[PlanItem], problems: Problems, left: int = EDGES) -> int:
    """Make each numbered item, with its subtasks, wait for the one before it.

    Args:
        left: how many dependencies may be created; returned less those created.
    """
    before: list[str] = []
    last: PlanItem | None = None
    for item in items:
        if last is None or not (last.numbered and item.numbered and last.section == item.section):
            before = []
        names = list(item.names())
        left -= len(names) * len(before)
        if left < 0:
            problems.add(item.line, "too many tasks one after another; use bullets, and `after=` where order matters")
            return left
        _wait(item, before)
        before, last = names or before, item
        left = _chain_numbered(item.items, problems, left)
        if left < 0:
            return left
    return left


def _wait(item: PlanItem, before: list[str]) -> None:
    after = item.attributes.setdefault("after", [])
    if isinstance(after, list):
        known = {name for name in after if isinstance(name, str)}
        after.extend(name for name in before if name not in known)
    for inner in item.items:
        _wait(inner, before)


def _written(task: PlannedTask, above: PlannedTask | None, box: str) -> str:
    """An item with its attributes and description, not yet indented."""
    fields = task.model_dump(
        mode="json", exclude={"line", "parent", "title", "name", "description"}, exclude_defaults=True
    )
    if above and above.worktree and task.worktree is None:
        fields["worktree"] = None
    plain_title, plain_text = _is_plain_title(task.title), _is_plain_text(task.description)
    if not plain_title:
        fields["title"] = task.title
    if not plain_text:
        fields["description"] = task.description
    if not plain_title or slug(task.title) != task.name:
        fields = {"name": task.name, **fields}
    words = {key: word for key, value in fields.items() if (word := attributes.written(key, value)) is not None}
    braces = " ".join(f"{key}={word}" for key, word in words.items())
    lines = [f"  {key}: {attributes.as_line(value)}\n" for key, value in fields.items() if key not in words]
    text = f"\n{_indented(task.description.strip(), '  ')}\n\n" if plain_text and task.description.strip() else ""
    return f"- [{box}] {task.title if plain_title else task.name} {{{braces}}}\n{''.join(lines)}{text}"


def _indented(text: str, margin: str) -> str:
    """Indent the lines of a text. Not `textwrap.indent`, which splits at more than newlines."""
    return "\n".join(margin + line if line else "" for line in text.split("\n"))


def _is_plain_title(title: str) -> bool:
    return title == title.strip() and title.isprintable() and "{" not in title


def _is_plain_text(text: str) -> bool:
    """Whether a description can be written below its item as it is; surrounding space does not matter."""
    lines = text.strip().split("\n")
    return all(line.isprintable() and line == line.rstrip() and is_text(line) for line in lines)

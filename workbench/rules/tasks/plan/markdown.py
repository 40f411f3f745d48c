"""Plans as Markdown checklists.

```markdown
---
plan: penguins                   # or the title's words with dashes; persona and worktree may be given for all
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

An item with a box is a task. Its name is `name=`, else its title's words with dashes; items inside it are its
subtasks, with its persona and worktree unless they say otherwise. In a numbered list one comes after another, with all
that is inside. A ticked item is left out, and what comes after it need not wait. Headings, other text that is not
indented, and comments are for people only. What an item may say is in `attributes`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from textwrap import dedent
from typing import Any

from workbench.rules.tasks.plan import attributes
from workbench.rules.tasks.plan.draft import INHERITED, Draft, Entry, Problems
from workbench.rules.tasks.plan.items import Item, Reader, has_items, is_text, slug
from workbench.rules.tasks.plan.model import Plan, PlannedTask
from workbench.rules.tasks.plan.yaml import Mapping, load

EDGES = 20_000
"""Dependencies that numbered lists may stand for in one plan."""

_YAML = re.compile(r"""^["']?tasks["']?[ \t]*:""", re.MULTILINE)
_FRONT = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


def looks_like(text: str) -> bool:
    """Whether a text is a checklist rather than YAML: it has items with boxes, and no `tasks:`."""
    return has_items(text) and not _YAML.search(text) and not text.lstrip().startswith("{")


def read(text: str, problems: Problems) -> Draft:
    """A plan as it was written."""
    front = _FRONT.match(text)
    defaults = _front_matter(front[1], problems) if front else {}
    reader = Reader(problems)
    start = front[0].count("\n") if front else 0
    for number, line in enumerate(text.split("\n")[start:], start + 1):
        reader.line(number, line)
    reader.end()
    if not reader.top and not problems.found:
        problems.add(1, "a checklist has items such as `- [ ] Do it {persona=…}`")
    _one_after_another(reader.top, problems)
    above = {key: defaults[key] for key in INHERITED if key in defaults}
    entries = [entry for item in reader.top for entry in _entries(item, None, above, problems)]
    named = {"plan": defaults["plan"]} if "plan" in defaults else _named(reader.title, problems)
    return Draft(entries, name=named)


def write(plan: Plan, completed: Collection[str] = ()) -> str:
    """A plan as text that is read as the same plan, with the boxes of some tasks ticked."""
    parts: dict[str | None, list[PlannedTask]] = {}
    for task in plan.tasks:
        parts.setdefault(task.parent, []).append(task)

    def under(above: PlannedTask | None, margin: str) -> Iterator[str]:
        for task in parts.get(above.name if above else None, ()):
            box = "x" if task.name in completed else " "
            yield _indented(_written(task, above, box), margin)
            yield from under(task, margin + "  ")

    return f'---\nplan: "{plan.plan}"\n---\n# {plan.plan}\n\n' + "".join(under(None, ""))


def _front_matter(text: str, problems: Problems) -> dict[str, Any]:
    said = load("\n" + text, problems)
    if said is None:
        return {}
    if not isinstance(said, Mapping):
        problems.add(1, "the front matter is a mapping such as `plan: name`")
        return {}
    for key in said.keys() - {"plan", *INHERITED}:
        problems.add(said.line, f"unknown key {key!r}; the front matter may say plan, {' and '.join(INHERITED)}")
    return said


def _named(title: tuple[int, str] | None, problems: Problems) -> dict[str, Any]:
    if title is None:
        return {}
    line, text = title
    if not slug(text):
        problems.add(
            line, "the title has no letters to make a name of; give the plan one in front matter: `plan: name`"
        )
    return {"plan": slug(text) or "plan"}


def _entries(item: Item, above: Entry | None, defaults: dict[str, Any], problems: Problems) -> Iterator[Entry]:
    """An item and what is inside it, as tasks."""
    fields = (defaults if above is None else {}) | {"name": item.name, "title": item.title} | item.said
    if description := dedent("\n".join(item.text)).strip():
        if "description" in item.said:
            problems.add(item.line, "the description is given twice")
        fields["description"] = description
    if not item.name:
        problems.add(item.line, "the title has no letters to make a name of; give it one: {name=…}")
        fields["name"] = f"line-{item.line}"
    entry = Entry(fields, item.line, item.ticked).under(above, problems)
    yield entry
    for inner in item.items:
        yield from _entries(inner, entry, defaults, problems)


def _one_after_another(items: list[Item], problems: Problems, left: int = EDGES) -> int:
    """Have each numbered item, with all inside, wait for the one before it; how many dependencies are left to give."""
    before: list[str] = []
    last: Item | None = None
    for item in items:
        if last is None or not (last.numbered and item.numbered and last.stretch == item.stretch):
            before = []
        names = list(item.names())
        left -= len(names) * len(before)
        if left < 0:
            problems.add(item.line, "too many tasks one after another; use bullets, and `after=` where it matters")
            return left
        _wait(item, before)
        before, last = names or before, item
        left = _one_after_another(item.items, problems, left)
        if left < 0:
            return left
    return left


def _wait(item: Item, before: list[str]) -> None:
    after = item.said.setdefault("after", [])
    if isinstance(after, list):
        known = {name for name in after if isinstance(name, str)}
        after.extend(name for name in before if name not in known)
    for inner in item.items:
        _wait(inner, before)


def _written(task: PlannedTask, above: PlannedTask | None, box: str) -> str:
    """An item with its attributes and description, not yet indented."""
    told = task.model_dump(
        mode="json", exclude={"line", "parent", "title", "name", "description"}, exclude_defaults=True
    )
    if above and above.worktree and task.worktree is None:
        told["worktree"] = None
    plain_title, plain_text = _is_plain_title(task.title), _is_plain_text(task.description)
    if not plain_title:
        told["title"] = task.title
    if not plain_text:
        told["description"] = task.description
    if not plain_title or slug(task.title) != task.name:
        told = {"name": task.name, **told}
    words = {key: word for key, value in told.items() if (word := attributes.written(key, value)) is not None}
    braces = " ".join(f"{key}={word}" for key, word in words.items())
    lines = [f"  {key}: {attributes.as_line(value)}\n" for key, value in told.items() if key not in words]
    text = f"\n{_indented(task.description.strip(), '  ')}\n\n" if plain_text and task.description.strip() else ""
    return f"- [{box}] {task.title if plain_title else task.name} {{{braces}}}\n{''.join(lines)}{text}"


def _indented(text: str, margin: str) -> str:
    """The lines of a text behind a margin; `textwrap.indent` knows more ends of lines than there are here."""
    return "\n".join(margin + line if line else "" for line in text.split("\n"))


def _is_plain_title(title: str) -> bool:
    return title == title.strip() and title.isprintable() and "{" not in title


def _is_plain_text(text: str) -> bool:
    """Whether a description can be written as it is, below its item; space around it means nothing."""
    lines = text.strip().split("\n")
    return all(line.isprintable() and line == line.rstrip() and is_text(line) for line in lines)

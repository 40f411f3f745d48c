"""Plans as YAML.

```yaml
plan: penguins
tasks:
  - name: clean            # unique within the plan
    title: Clean the table
    persona: implementer
    description: …         # optional, as is everything below
    priority: 900
    worktree: report
    session: …             # id or name
    run: python clean.py   # a string for /bin/sh -c, or a list
    max_retries: 2
    no_retry: [ValueError]
    lease_seconds: 60
    after: [other]
    on_failure: cancel     # when `other` fails or is cancelled: block, cancel or ignore
    parent: whole          # the task it is part of
    subtasks:              # parts of it, with its persona and worktree unless they say otherwise
      - …
```
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from workbench.rules.tasks.plan.draft import KEYS, Draft, Entry, Problems, unknown_key
from workbench.rules.tasks.plan.model import Plan, PlannedTask
from workbench.rules.wire.json_safety import DEPTH_LIMIT

NOT_YAML = (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What PyYAML raises; the last ones for values that do not fit their tag, such as `!!int ""`."""
_KEYS = (*KEYS, "subtasks")


class Mapping(dict[str, Any]):
    """A mapping that knows the line it begins in."""

    line = 1


def read(text: str, problems: Problems) -> Draft:
    """A plan as it was written."""
    document = load(text, problems)
    if not isinstance(document, Mapping):
        if not problems.found:
            told = "a plan is a mapping with `plan:` and `tasks:`, or a Markdown checklist of `- [ ] Do it` items"
            problems.add(1, told)
        problems.raise_if_any()
    for key in document.keys() - {"plan", "tasks"}:
        problems.add(document.line, f"unknown key {key!r}; a plan has `plan` and `tasks`")
    entries = list(_entries(document.get("tasks"), "tasks", document.line, None, problems))
    return Draft(entries, document.line, {key: document[key] for key in ("plan",) if key in document})


def load(text: str, problems: Problems) -> Any:
    """What some YAML says; None and a problem if it is none."""
    try:
        return yaml.load(text, Loader=_LineLoader)
    except NOT_YAML as error:
        line, reason = flaw(error)
        problems.add(line or 1, f"not YAML: {reason}")
    return None


def flaw(error: Exception) -> tuple[int | None, str]:
    """The line in which a text is `NOT_YAML`, if that is known, and why it is not."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return None, str(error)
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else None, str(error.problem or error.context)


def write(plan: Plan) -> str:
    """A plan as text that is read as the same plan."""
    document = {"plan": plan.plan, "tasks": [_told(task) for task in plan.tasks]}
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def _told(task: PlannedTask) -> dict[str, Any]:
    return task.model_dump(mode="json", exclude={"line"}, exclude_defaults=True)


def _entries(said: Any, key: str, line: int, above: Entry | None, problems: Problems) -> Iterator[Entry]:
    """The tasks of a list, each followed by its subtasks."""
    if not isinstance(said, list) or not said:
        problems.add(line, f"`{key}` must be a list with at least one task")
        return
    for one in said:
        if not isinstance(one, Mapping):
            problems.add(line, "a task is a mapping with at least name, title and persona")
            continue
        for unknown in (key for key in one if key not in _KEYS):
            problems.add(one.line, unknown_key(unknown, _KEYS))
        fields = {key: one[key] for key in KEYS if key in one}
        entry = Entry(fields, one.line).under(above, problems)
        yield entry
        if "subtasks" in one:
            yield from _entries(one["subtasks"], "subtasks", one.line, entry, problems)


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


def _mapping(loader: _LineLoader, node: yaml.MappingNode) -> Mapping:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key is a word", key.start_mark)
        if key.value in seen:
            raise yaml.constructor.ConstructorError(None, None, f"the key {key.value!r} is given twice", key.start_mark)
        seen.add(key.value)
    made = Mapping((str(key), value) for key, value in loader.construct_mapping(node, deep=True).items())
    made.line = node.start_mark.line + 1
    return made


_LineLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


class _Dumper(yaml.SafeDumper):
    """Writes what `_LineLoader` reads: no aliases; and texts of several lines as a person would."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


def _style(text: str) -> str | None:
    """How to write a text: with escapes what cannot be seen, in lines what has some, else as YAML likes it."""
    lines = text.split("\n")
    if not all(line.isprintable() for line in lines):
        return '"'
    is_plain = len(lines) > 1 and not text[0].isspace() and all(line == line.rstrip() for line in lines)
    return "|" if is_plain else None


_Dumper.add_representer(str, _text)

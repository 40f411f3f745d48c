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
    subtasks:              # its subtasks, which inherit its persona and worktree
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
"""The errors of PyYAML; all but the first and the last for values that do not match their tag, such as `!!int ""`."""
_KEYS = (*KEYS, "subtasks")


class Mapping(dict[str, Any]):
    """A mapping with the line in which it begins."""

    line = 1


def read(text: str, problems: Problems) -> Draft:
    """Parse YAML to a draft."""
    document = load(text, problems)
    if not isinstance(document, Mapping):
        if not problems.found:
            text = "a plan is a mapping with `plan:` and `tasks:`, or a Markdown checklist of `- [ ] Do it` items"
            problems.add(1, text)
        problems.raise_if_any()
    for key in document.keys() - {"plan", "tasks"}:
        problems.add(document.line, f"unknown key {key!r}; a plan has `plan` and `tasks`")
    entries = list(_entries(document.get("tasks"), "tasks", document.line, None, problems))
    return Draft(entries, document.line, {key: document[key] for key in ("plan",) if key in document})


def load(text: str, problems: Problems) -> Any:
    """Parse YAML; if it is invalid, add a problem and return None."""
    try:
        return yaml.load(text, Loader=_LineLoader)
    except NOT_YAML as error:
        line, reason = flaw(error)
        problems.add(line or 1, f"not YAML: {reason}")
    return None


def flaw(error: Exception) -> tuple[int | None, str]:
    """The line of a `NOT_YAML` error, if known, and the reason."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return None, str(error)
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else None, str(error.problem or error.context)


def write(plan: Plan) -> str:
    """Write a plan as text that parses to the same plan."""
    document = {"plan": plan.plan, "tasks": [_fields(task) for task in plan.tasks]}
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def _fields(task: PlannedTask) -> dict[str, Any]:
    return task.model_dump(mode="json", exclude={"line"}, exclude_defaults=True)


def _entries(tasks: Any, key: str, line: int, above: Entry | None, problems: Problems) -> Iterator[Entry]:
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
        entry = Entry(fields, one.line).under(above, problems)
        yield entry
        if "subtasks" in one:
            yield from _entries(one["subtasks"], "subtasks", one.line, entry, problems)


class _LineLoader(yaml.SafeLoader):
    """A safe loader whose mappings know their line, and which refuses duplicate keys and aliases.

    A few lines of aliases could expand to billions of nodes.
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
            raise yaml.constructor.ConstructorError(None, None, "a key must be a word", key.start_mark)
        if key.value in seen:
            raise yaml.constructor.ConstructorError(None, None, f"the key {key.value!r} is given twice", key.start_mark)
        seen.add(key.value)
    made = Mapping((str(key), value) for key, value in loader.construct_mapping(node, deep=True).items())
    made.line = node.start_mark.line + 1
    return made


_LineLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


class _Dumper(yaml.SafeDumper):
    """Writes YAML without aliases, and multi-line text as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


def _style(text: str) -> str | None:
    """The style of a text: quoted if it is not printable, a block if it has several lines, else the default."""
    lines = text.split("\n")
    if not all(line.isprintable() for line in lines):
        return '"'
    is_plain = len(lines) > 1 and not text[0].isspace() and all(line == line.rstrip() for line in lines)
    return "|" if is_plain else None


_Dumper.add_representer(str, _text)

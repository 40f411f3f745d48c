"""What operations declare of commands, with what their schemas say, as the command line reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from workbench.ops import Columns, Command, Op, collect
from workbench.services import SERVICES

OFFERED = {
    one: f"{one}s" for one in ("agent", "conversation", "definition", "peer", "persona", "plan", "project", "run")
}
OFFERED |= {"session": "sessions", "task": "tasks", "team": "teams", "worktree_name": "worktrees"}
OFFERED |= {"agentTarget": "definition"}
"""What completion offers for a parameter, by its name without `_id`."""
_NAME = re.compile(r"(?<![\w/.'\"-])(`?)([a-z]+(?:_[a-z]+)+)\1(?![\w/'\"=:-]|\.\w)")
"""An operation that a text names, perhaps in backquotes; not a part of a path, the name of a field, or quoted."""
SHOWN_BY = ("also", "says", "prints", "asks", "fixed")


def data() -> str:
    """The file, one command a line."""
    ops = collect(SERVICES).values()
    names = {op.name: op.typed.removesuffix(" list") for op in ops if op.typed}
    rows = [_row(op, command, names) for op in ops for command in op.commands]
    named, lists = json.dumps(names, indent=0), json.dumps({op.name: _list(op) for op in ops if op.refreshed_by})
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f'{{"operations": {named},\n"lists": {lists},\n"commands": [\n{lines}\n]}}\n'


def _list(op: Op) -> dict[str, Any]:
    """What an operation lists: the field with the rows, and the events after which they are others."""
    rows = next(name for name, part in op.output_schema["properties"].items() if part.get("type") == "array")
    return {"rows": rows, "refreshed_by": op.refreshed_by}


def _row(op: Op, command: Command, names: Mapping[str, str]) -> dict[str, Any]:
    known: Mapping[str, Any] = op.input_schema.get("properties", {})
    called = {parameter: word for word, parameter in command.names.items()}
    arguments = {_parameter(word, command, known): word for word in command.words.split() if not word.islower()}
    options = (
        known.keys() - {*arguments, *command.fixed, "cursor", "before"} if command.options is None else command.options
    )
    parts = {name: _described(op, command, name, names) for name in known}
    summary = command.help or _in_commands(op.help.partition("\n\n")[0], names)
    return {
        "words": command.typed,
        "operation": op.name,
        "help": " ".join(summary.split()),
        "arguments": [{"typed": word} | _unhelped(parts[name]) for name, word in arguments.items()],
        "options": [
            {"typed": "--" + called.get(name, name.removesuffix("_id").replace("_", "-")).replace("/", "/--")} | part
            for name, part in parts.items()
            if name in options and part["type"] in ("string", "integer", "number", "boolean")
        ],
        **{key: value for key in SHOWN_BY if (value := getattr(command, key))},
        **({} if command.says or command.prints else _view(op)),
    }


def _in_commands(text: str, names: Mapping[str, str]) -> str:
    """A text about operations, with their commands in their place."""
    return _NAME.sub(lambda found: f"`workbench {names[found[2]]}`" if found[2] in names else found[0], text)


def _unhelped(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in ("help", "metavar")}


def _parameter(word: str, command: Command, known: Mapping[str, Any]) -> str:
    bare = word.strip("[].")
    name = command.names.get(bare, bare.lower())
    return name if name in known else next(one for one in known if name in _snake(one).split("_"))


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def _described(op: Op, command: Command, name: str, names: Mapping[str, str]) -> dict[str, Any]:
    """What the schema says of a parameter, without what it does not say."""
    part, defined = op.input_schema["properties"][name], op.input_schema.get("$defs", {})
    branches = [defined[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in part.get("anyOf", [part])]
    by_type = {str(one.get("type", "")): one for one in branches}
    value = by_type.get("string") or next(one for kind, one in by_type.items() if kind != "null")
    is_required, plain = name in op.input_schema.get("required", ()), name.removesuffix("_id")
    about = _in_commands(part.get("description") or value.get("description", ""), names)
    if (default := part.get("default")) not in (None, False, "", [], {}):
        about = f"{about.removesuffix('.')} (default: {default})."
    found = {
        "name": name,
        "type": value.get("type", ""),
        "help": about,
        "values": values.get("type") if isinstance(values := value.get("additionalProperties"), dict) else None,
        "metavar": "TIME" if value.get("format") == "date-time" else plain.upper() if plain != name else None,
        "min": value.get("minimum"),
        "max": value.get("maximum"),
        "choices": value.get("enum"),
        "nullable": (is_required and "null" in by_type) or None,
        "offers": command.offers.get(name, OFFERED.get(plain)),
    }
    return {key: item for key, item in found.items() if item is not None}


def _view(op: Op) -> dict[str, Any]:
    model = op.fn.__annotations__["return"]
    shown = getattr(op.fn.__globals__[model], "SHOWN", None)
    if not isinstance(shown, Columns):
        return {"view": model}
    return {"table": {"rows": shown.rows, "columns": shown.headings(), "empty": shown.empty, "sparse": shown.sparse}}

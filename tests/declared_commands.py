"""What operations declare of commands, with what their schemas say, as the command line reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.ops import Columns, Command, Op, collect
from workbench.rules.wording import HAND_WRITTEN, in_commands
from workbench.services import SERVICES

OFFERED = {
    one: f"{one}s" for one in ("agent", "conversation", "definition", "peer", "persona", "plan", "project", "run")
}
OFFERED |= {"session": "sessions", "task": "tasks", "team": "teams", "worktree_name": "worktrees"}
"""What completion offers for a parameter, by its name without `_id`."""
SHOWN_BY = ("also", "says", "prints", "asks", "fixed")


def data() -> str:
    """The file, one command a line."""
    found = [(op, command) for op in collect(SERVICES).values() for command in op.commands]
    names = {op.name: " ".join(_path(command)).removesuffix(" list") for op, command in reversed(found)} | HAND_WRITTEN
    lines = [json.dumps(_row(op, command, names), ensure_ascii=False) for op, command in found]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _path(command: Command) -> list[str]:
    return [word for word in command.words.split() if word.islower()]


def _row(op: Op, command: Command, names: Mapping[str, str]) -> dict[str, Any]:
    known: Mapping[str, Any] = op.input_schema.get("properties", {})
    called = {parameter: word for word, parameter in command.names.items()}
    arguments = {_parameter(word, command, known): word for word in command.words.split() if not word.islower()}
    options = (
        known.keys() - {*arguments, *command.fixed, "cursor", "before"} if command.options is None else command.options
    )
    parts = {name: _described(op, command, name, names) for name in known}
    summary = command.help or in_commands(op.help.partition("\n\n")[0], known=names)
    return {
        "words": " ".join(_path(command)),
        "operation": op.name,
        "help": " ".join(summary.split()),
        "arguments": [{"typed": word} | _unhelped(parts[name]) for name, word in arguments.items()],
        "options": [
            {"typed": "--" + called.get(name, name.removesuffix("_id").replace("_", "-"))} | part
            for name, part in parts.items()
            if name in options and part["type"] in ("string", "integer", "number", "boolean")
        ],
        **{key: value for key in SHOWN_BY if (value := getattr(command, key))},
        **({} if command.says or command.prints else _view(op)),
    }


def _unhelped(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in ("help", "metavar")}


def _parameter(word: str, command: Command, known: Mapping[str, Any]) -> str:
    bare = word.strip("[]")
    name = command.names.get(bare, bare.lower())
    return name if name in known else f"{name}_id"


def _described(op: Op, command: Command, name: str, names: Mapping[str, str]) -> dict[str, Any]:
    """What the schema says of a parameter, without what it does not say."""
    part, defined = op.input_schema["properties"][name], op.input_schema.get("$defs", {})
    branches = [defined[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in part.get("anyOf", [part])]
    by_type = {str(one.get("type", "")): one for one in branches}
    value = by_type.get("string") or next(one for kind, one in by_type.items() if kind != "null")
    is_required, plain = name in op.input_schema.get("required", ()), name.removesuffix("_id")
    about = in_commands(part.get("description") or value.get("description", ""), known=names)
    if (default := part.get("default")) not in (None, False, "", [], {}):
        about = f"{about.removesuffix('.')} (default: {default})."
    found = {
        "name": name,
        "type": value.get("type", ""),
        "help": about,
        "metavar": plain.upper() if plain != name else None,
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

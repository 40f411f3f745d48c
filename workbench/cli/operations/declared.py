"""The commands that are one call of an operation, made of what the operation declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.grants import NOTHING
from workbench.cli.operations.call import parse_arguments
from workbench.cli.output import Note, Shown, Text, confirmed, drop_none, more_note, pairs, pass_client
from workbench.present.declared import declared, table_of

DEFAULT = "default"
TYPES: Mapping[str, type] = {"integer": int, "number": float, "string": str, "boolean": bool}
View = TypeVar("View", bound=Callable[..., Shown])
_VIEWS: dict[str, Callable[[dict[str, Any], Mapping[str, Any]], Shown]] = {}


def view(model: str, with_arguments: bool = False) -> Callable[[View], View]:
    """Have a function show every result of a model, for commands that declare nothing else.

    Args:
        with_arguments: the function takes the arguments of the call, too.
    """

    def register(shows: View) -> View:
        _VIEWS[model] = shows if with_arguments else lambda result, _: shows(result)
        return shows

    return register


def add_declared(root: click.Group) -> None:
    """Add every declared command to the group that its words name."""
    for row in declared():
        command = _command(row)
        for words in filter(None, (row["words"], row.get("also"))):
            *above, name = words.split()
            group: Any = root
            for word in above:
                group = group.commands[word]
            group.add_command(command, name)


def _command(row: Mapping[str, Any]) -> click.Command:
    parameters = [*map(_argument, row["arguments"]), *map(_option, row["options"])]
    if "asks" in row:
        parameters.append(click.Option(["--yes"], is_flag=True, help="Do not ask."))
    nothing = {part["name"]: _nothing(part) for part in row["arguments"] if part.get("nullable")}

    @pass_client
    def run(client: OperatorClient, yes: bool = False, **typed: Any) -> Shown:
        arguments = drop_none(**typed)
        changes = [part["name"] for part in row["options"] if part["name"] in arguments]
        if "{changed}" in row.get("says", "") and not changes:
            raise click.UsageError(f"Give {', '.join(part['typed'] for part in row['options'])}, or both.")
        if "asks" in row:
            confirmed(row["asks"].format_map(arguments), yes)
        null = {name: None for name, word in nothing.items() if arguments[name] == word}
        result = client.call(row["operation"], **arguments | null | row.get("fixed", {}))
        return _show(row, result, arguments | {"changed": " and the ".join(changes)})

    is_signed = any(part.get("min", 0) < 0 for part in row["arguments"])
    settings = {"ignore_unknown_options": True} if is_signed else {}  # -1 is an argument then
    return click.Command(row["words"].split()[-1], settings, run, parameters, help=row["help"])


def _show(row: Mapping[str, Any], result: dict[str, Any], arguments: Mapping[str, Any]) -> Shown:
    """A result as its operation declares it. A sentence names fields of the result before arguments."""
    if "view" in row:
        return _VIEWS[row["view"]](result, arguments)
    if "table" in row:
        rows = row["table"]["rows"]
        return table_of(row["operation"], result[rows], note=more_note(result, rows))
    fields = {**arguments, **{name: value for name, value in result.items() if not isinstance(value, dict | list)}}
    if "prints" in row:
        return Text(row["prints"].format_map(fields), result)
    return Note(row["says"].format_map(fields).rstrip(), result)


def _argument(part: Mapping[str, Any]) -> click.Parameter:
    typed = part["typed"]
    is_required, metavar = not typed.startswith("["), None if "choices" in part else typed
    if part["type"] == "object":
        read = pairs if part.get("values") == "string" else parse_arguments
        empty: dict[str, Any] | None = {} if is_required else None
        is_required &= read is parse_arguments
        settings: dict[str, Any] = {"nargs": -1, "callback": lambda _, __, texts: read(texts) if texts else empty}
    else:
        settings = {"type": _type(part)} | _offers(part)
    argument = click.Argument([part["name"]], is_required, metavar=metavar, **settings)
    argument.name = part["name"]  # click would write it in lower case
    return argument


def _option(part: Mapping[str, Any]) -> click.Parameter:
    is_flag = part["type"] == "boolean"
    kind = {"is_flag": True} if is_flag else {"type": _type(part), "metavar": part.get("metavar")} | _offers(part)
    return click.Option([part["typed"], part["name"]], default=None, help=part["help"], **kind)


def _nothing(part: Mapping[str, Any]) -> str:
    """What is typed for null."""
    return DEFAULT if "choices" in part else NOTHING


def _type(part: Mapping[str, Any]) -> Any:
    if "choices" in part:
        return click.Choice([*part["choices"], *([DEFAULT] if part.get("nullable") else ())])
    is_range = part["typed"].startswith("-") and ("min" in part or "max" in part)
    ranges = click.FloatRange if part["type"] == "number" else click.IntRange
    return ranges(part.get("min"), part.get("max")) if is_range else TYPES[part["type"]]


def _offers(part: Mapping[str, Any]) -> dict[str, Any]:
    if "offers" not in part:
        return {}
    offered = getattr(offers, part["offers"])
    return {"type" if isinstance(offered, click.ParamType) else "shell_complete": offered}

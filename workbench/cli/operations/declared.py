"""The commands that are one call of an operation, made of what the operation declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.grants import NOTHING
from workbench.cli.output import Note, Shown, Text, confirmed, drop_none, more_note, pass_client
from workbench.present.declared import declared, table_of

TYPES: Mapping[str, type] = {"integer": int, "number": float, "string": str, "boolean": bool}
View = TypeVar("View", bound=Callable[[dict[str, Any]], Shown])
_VIEWS: dict[str, Callable[[dict[str, Any]], Shown]] = {}


def view(model: str) -> Callable[[View], View]:
    """Have a function show every result of a model, for commands that declare nothing else."""

    def register(shows: View) -> View:
        _VIEWS[model] = shows
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
    nullable = [one["name"] for one in row["arguments"] if one.get("nullable")]

    @pass_client
    def run(client: OperatorClient, yes: bool = False, **typed: Any) -> Shown:
        given = drop_none(**typed)
        changed = [one["name"] for one in row["options"] if one["name"] in given]
        if "{changed}" in row.get("says", "") and not changed:
            raise click.UsageError(f"Give {', '.join(one['typed'] for one in row['options'])}, or both.")
        if "asks" in row:
            confirmed(row["asks"].format_map(given), yes)
        null = {name: None for name in nullable if given[name] == NOTHING}
        made = client.call(row["operation"], **given | null | row.get("fixed", {}))
        return _shown(row, made, given | {"changed": " and the ".join(changed)})

    is_signed = any(one.get("min", 0) < 0 for one in row["arguments"])
    settings = {"ignore_unknown_options": True} if is_signed else {}  # -1 is an argument then
    return click.Command(row["words"].split()[-1], settings, run, parameters, help=row["help"])


def _shown(row: Mapping[str, Any], made: dict[str, Any], given: Mapping[str, Any]) -> Shown:
    """A result as its operation declares it. A sentence names fields of the result before arguments."""
    if "view" in row:
        return _VIEWS[row["view"]](made)
    if "table" in row:
        rows = row["table"]["rows"]
        return table_of(row["operation"], made[rows], note=more_note(made, rows))
    fields = {**given, **{name: value for name, value in made.items() if not isinstance(value, dict | list)}}
    if "prints" in row:
        return Text(row["prints"].format_map(fields), made)
    return Note(row["says"].format_map(fields), made)


def _argument(one: Mapping[str, Any]) -> click.Parameter:
    is_required = not one["typed"].startswith("[")
    return click.Argument([one["name"]], required=is_required, metavar=one["typed"], type=_type(one), **_offers(one))


def _option(one: Mapping[str, Any]) -> click.Parameter:
    is_flag = one["type"] == "boolean"
    kind = {"is_flag": True} if is_flag else {"type": _type(one), "metavar": one.get("metavar")}
    return click.Option([one["typed"], one["name"]], default=None, help=one["help"], **kind, **_offers(one))


def _type(one: Mapping[str, Any]) -> Any:
    if "choices" in one:
        return click.Choice(one["choices"])
    is_range = one["typed"].startswith("-") and ("min" in one or "max" in one)
    return click.IntRange(one.get("min"), one.get("max")) if is_range else TYPES[one["type"]]


def _offers(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"shell_complete": getattr(offers, one["offers"])} if "offers" in one else {}

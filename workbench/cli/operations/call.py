"""Any operation, with its arguments as pairs or as JSON: `call`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import Shown, Text, pass_client
from workbench.errors import BadInput, NotFound


@root.command("call")
@click.argument("name", shell_complete=offers.operations)
@click.argument("arguments", nargs=-1)
@pass_client
def call_op(client: OperatorClient, name: str, arguments: tuple[str, ...]) -> Shown:
    """Call any operation. `call NAME key=value …` or `call NAME '{"key": value}'`."""
    try:
        made = client.call(name, **parse_arguments(arguments))
    except NotFound as error:
        raise (_unknown(name) if error.code == "UNKNOWN_OPERATION" else error) from None
    return Text(json.dumps(made, indent=2, ensure_ascii=False), made)


def _unknown(name: str) -> NotFound:
    """The error for a name that no operation has, with the names like it."""
    from workbench.ops import collect
    from workbench.rules.naming import suggestion
    from workbench.services import SERVICES

    hint = suggestion(name, collect(SERVICES))
    return NotFound("UNKNOWN_OPERATION", f"There is no operation {name!r}. {hint}docs/reference.md lists them.")


def parse_arguments(arguments: Sequence[str]) -> dict[str, Any]:
    """`key=value` pairs (values are JSON where they can be) or one JSON object.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    if len(arguments) == 1 and arguments[0].lstrip().startswith("{"):
        try:
            whole: dict[str, Any] = json.loads(arguments[0])
        except ValueError as error:
            raise BadInput("INVALID_ARGUMENTS", f"The arguments are not JSON: {error}.", problems=[]) from None
        return whole
    pairs = [argument.partition("=") for argument in arguments]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise BadInput("INVALID_ARGUMENTS", f"{wrong[0]} has no value. Write {wrong[0]}=….", problems=[])
    return {key: _value(text) for key, _, text in pairs}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

"""Any operation, with its arguments as pairs or as JSON: `call`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import Shown, Text, pass_client
from workbench.errors import BadInput, NotFound


def _arguments(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the arguments of the operation that is named, as `name=`."""
    from workbench.ops import collect
    from workbench.services import SERVICES

    operation = collect(SERVICES).get(context.params.get("name") or "")
    names = operation.arguments.model_fields if operation else ()
    return [CompletionItem(f"{name}=") for name in names if name.startswith(incomplete)]


@root.command("call")
@click.argument("name", shell_complete=offers.operations)
@click.argument("arguments", nargs=-1, shell_complete=_arguments)
@pass_client
def call_op(client: OperatorClient, name: str, arguments: tuple[str, ...]) -> Shown:
    """Call any operation. `call NAME key=value …` or `call NAME '{"key": value}'`."""
    try:
        result = client.call(name, **parse_arguments(arguments))
    except NotFound as error:
        raise (_unknown(name) if error.code == "UNKNOWN_OPERATION" else error) from None
    return Text(json.dumps(result, indent=2, ensure_ascii=False), result)


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
            values: dict[str, Any] = json.loads(arguments[0])
        except ValueError as error:
            raise BadInput("INVALID_ARGUMENTS", f"The arguments are not JSON: {error}.", problems=[]) from None
        return values
    pairs = [argument.partition("=") for argument in arguments]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise BadInput("INVALID_ARGUMENTS", f"{wrong[0]} has no value. Write {wrong[0]}=….", problems=[])
    return {key: _value(text) for key, _, text in pairs}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

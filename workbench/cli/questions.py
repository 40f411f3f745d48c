"""Questions of agents and of MCP servers: `answer`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from workbench.cli.approvals import AGENT_QUESTION, QUESTION, outcome_text, pending_about, question_text
from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, pass_client
from workbench.errors import BadInput
from workbench.present.inert import inert, inert_line
from workbench.rules.tools.questions import properties, typed

ACTIONS = {"decline": "You decline.", "cancel": "You do not choose: the server is told that nobody has answered."}


@root.command()
@click.argument("request", metavar="ID|TOOL|AGENT", shell_complete=offers.approvals)
@click.argument("fields", metavar="[TEXT|FIELD=VALUE]...", nargs=-1)
@click.option("--decline", "action", flag_value="decline", help=ACTIONS["decline"])
@click.option("--cancel", "action", flag_value="cancel", help=ACTIONS["cancel"])
@pass_client
def answer(client: OperatorClient, request: str, fields: tuple[str, ...], action: str | None) -> Shown:
    """Answer a question of an agent, with a text; or of an MCP server, whose call waits: FIELD=VALUE for each field. In a
    terminal you are asked for what is missing."""
    choices: dict[str, Any]
    if request.isdecimal():
        approval = client.call("get_approval", approval_id=int(request))
    else:
        waiting = [
            one for one in client.call("list_approvals")["approvals"] if one["kind"] in (QUESTION, AGENT_QUESTION)
        ]
        approval = client.call("get_approval", approval_id=pending_about(waiting, request))
    if approval["kind"] not in (QUESTION, AGENT_QUESTION):
        raise BadInput("INVALID_ARGUMENTS", f"Approval {approval['id']} is no question.", problems=[])
    if approval["kind"] == AGENT_QUESTION and action is not None:
        rejected = client.call("reject", approval_id=approval["id"])
        return Note(f"{outcome_text(rejected['outcome'])}.", rejected)
    if approval["kind"] == AGENT_QUESTION and fields:
        choices = {"content": {"answer": " ".join(fields)}}
    elif action is not None:
        choices = {"action": action}
    else:
        given, payload = read_fields(approval["payload"], fields), approval["payload"]
        if sys.stdin.isatty() and sys.stdout.isatty() and approval["status"] == "pending":
            click.echo(inert(question_text(payload)))
            given |= asked_fields(payload, given)
        choices = {"content": given}
    decision = client.call("approve", approval_id=approval["id"], choices=choices)
    return Note(f"{outcome_text(decision['outcome'])}.", decision)


def read_fields(payload: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """The values of fields, typed as FIELD=VALUE.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    fields, values = properties(payload["form"]), {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or name not in fields:
            known = ", ".join(map(inert_line, fields)) or "none"
            raise BadInput("INVALID_ARGUMENTS", f"{name} is no field. Write FIELD=VALUE; fields: {known}.", problems=[])
        try:
            values[name] = typed(fields[name], text)
        except ValueError as error:
            raise BadInput("INVALID_ARGUMENTS", f"{name}: {error}.", problems=[]) from None
    return values


def asked_fields(payload: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The other fields, for which the person at the terminal is asked; an optional one may be left empty."""
    form, values = payload["form"], {}
    for name, field in properties(form).items():
        if name in given:
            continue
        about = inert_line(" ".join(str(field.get(key) or "") for key in ("title", "description")).strip())
        words = ", ".join(map(str, field.get("enum") or ()))
        hints = ", ".join(filter(None, [about, inert_line(words), "" if name in form["required"] else "optional"]))
        text = _prompt(f"{inert_line(name)}{f' ({hints})' if hints else ''}", field, name in form["required"])
        if text:
            values[name] = typed(field, text)
    return values


def _prompt(question: str, field: Mapping[str, Any], is_required: bool) -> str:
    """What the person types, until it is of the field's type."""
    while True:
        known = field.get("default")
        default = None if is_required and known is None else "" if known is None else str(known)
        text: str = click.prompt(
            question, default=default, show_default=bool(default), hide_input=field.get("format") == "password"
        )
        try:
            typed(field, text)
        except ValueError as error:
            if not text:
                return ""
            click.secho(f"{error}", fg="yellow")
        else:
            return text

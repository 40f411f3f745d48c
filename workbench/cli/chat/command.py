"""`chat`: a conversation with the agent of a definition, or with a model."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.chat.answer import Answer, ConversationCaller
from workbench.cli.chat.attachments import attached, file_part
from workbench.cli.chat.terminal import print_answer
from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import JSON, root
from workbench.cli.output import Fn, Shown, Text, drop_none, pass_client
from workbench.errors import BadInput, WorkbenchError

LIMITS = ("turns", "tokens", "cost_usd", "seconds", "steps")
PROMPT = "> "


def conversation_options(command: Fn) -> Fn:
    """Add what a conversation may be begun with to a command, and the one to continue."""
    for option in reversed(
        (
            click.option(
                "--model",
                default=None,
                metavar="PROVIDER:MODEL",
                shell_complete=offers.models,
                help="Ask this model; `define models` lists some.",
            ),
            click.option(
                "--tools",
                multiple=True,
                metavar="NAME",
                help="Offer these: a tool, a server, `notebook`, `workbench` (operations), `*` (default), `none`.",
            ),
            click.option(
                "--include", multiple=True, metavar="NAME", help="Use this rule or reference, which is used on request."
            ),
            click.option(
                "--file",
                "files",
                multiple=True,
                type=click.Path(path_type=Path, dir_okay=False),
                help="Attach this text file to the question.",
            ),
            click.option("--title", default=None, help="What it is about."),
            click.option("--turns", type=click.IntRange(1), default=None, help="Limit of answers."),
            click.option("--tokens", type=click.IntRange(1), default=None, help="Limit of tokens."),
            click.option("--cost", "cost_usd", type=float, default=None, help="Limit of costs in US dollars."),
            click.option("--seconds", type=float, default=None, help="Limit of seconds for each answer."),
            click.option(
                "--steps",
                type=click.IntRange(1),
                default=None,
                help="Limit of requests for each answer (default: maxChatTurns of the definition, or 20).",
            ),
            click.option("--continue", "conversation", metavar="ID", default=None, help="Continue this conversation."),
        )
    ):
        command = option(command)
    return command


def begun(
    caller: ConversationCaller, definition: str | None, conversation: str | None, **options: Any
) -> Mapping[str, Any]:
    """A new conversation; or the one to continue, changed by the options that are given.

    Raises:
        BadInput: ``BAD_USAGE``. Other errors: what the operations raise.
    """
    limits = drop_none(**{name: options.pop(name, None) for name in LIMITS})
    settings = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items() if value}
    if "tools" in settings:
        settings["tools"] = [name for name in settings["tools"] if name != "none"]
    if limits:
        settings["limits"] = limits
    if conversation is None:
        if definition is None and "model" not in settings:
            raise BadInput("BAD_USAGE", "Name a definition, or give --model PROVIDER:MODEL.")
        return caller.call("create_conversation", **drop_none(definition=definition), **settings)
    if definition is not None:
        raise BadInput("BAD_USAGE", f"A conversation keeps its definition. Leave out {definition!r} or --continue.")
    if not settings:
        return caller.call("get_conversation", conversation_id=conversation)
    return caller.call("update_conversation", conversation_id=conversation, **settings)


@root.command()
@click.argument("definition", required=False, type=offers.definition)
@click.argument("question", required=False)
@conversation_options
@pass_client
@click.pass_context
def chat(ctx: click.Context, /, client: OperatorClient, question: str | None, **options: Any) -> Shown:
    """Chat with the agent of a definition, or with a model.

    With a QUESTION, or one on standard input, it prints the answer and ends. Otherwise it asks you for questions until
    Ctrl-D; Ctrl-C stops an answer. `conversations` lists what was said.
    """
    if options["conversation"] and options["definition"] and question is None:  # the only argument is the question
        question, options["definition"] = options["definition"], None
    if question is None and not sys.stdin.isatty():
        question = sys.stdin.read()
    if question is not None and not (question := question.strip()):
        raise click.UsageError(
            "What is the question? Write it after the definition, or send it to standard input. Without a definition "
            "it is always sent there: echo QUESTION | workbench chat --model PROVIDER:MODEL."
        )
    files = options.pop("files")
    if question is None and files:
        raise click.UsageError("--file belongs to a question. Write it after the definition.")
    if question is not None:
        question = attached(question, map(file_part, files))
    about = begun(client, **options)
    if question is not None:
        return _answer_once(client, about["id"], question, as_json=ctx.meta.get(JSON, False))
    click.secho(f"Conversation {about['id']} with {about['definition'] or about['model']}.", dim=True, err=True)
    for line in _questions():
        _print(client, about["id"], line)
    return None


def _answer_once(client: OperatorClient, conversation_id: str, question: str, *, as_json: bool) -> Shown:
    answer = Answer.asked(client, conversation_id, question)
    if not as_json:
        print_answer(client, answer)
        return None
    answer.wait()
    if answer.failure is not None:
        raise answer.failure
    return Text(answer.plain(), answer.turn)


def _questions() -> Iterator[str]:
    """What the person types, line by line."""
    import readline  # noqa: F401 (gives `input` its keys and history)

    while True:
        try:
            question = input(PROMPT).strip()
        except EOFError:
            click.echo(err=True)
            return
        if question:
            yield question


def _print(client: OperatorClient, conversation_id: str, question: str) -> None:
    """Print an answer; one that fails, or is stopped, does not end the conversation."""
    try:
        print_answer(client, Answer.asked(client, conversation_id, question))
    except KeyboardInterrupt:
        click.secho("Stopped.", dim=True)
    except WorkbenchError as error:
        click.echo(str(error), err=True)

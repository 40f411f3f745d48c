"""`conversations`: list, show, retry, stop, rename, export, delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter

from workbench.cli.chat.answer import Answer, ConversationCaller, ending
from workbench.cli.chat.parts import Pictures, as_page, as_text
from workbench.cli.chat.terminal import print_answer
from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.operations.declared import view
from workbench.cli.output import (
    Fn,
    Note,
    NounGroup,
    Shown,
    Text,
    confirmed,
    counted,
    output_unwritable,
    pass_client,
)
from workbench.present.inert import as_html
from workbench.present.tables import Table
from workbench.rules.chat.transcript import Part

COLUMNS = {
    "id": "conversation",
    "title": "title",
    "with": "with",
    "turns": "turns",
    "used": "tokens",
    "cost": "cost",
    "updated_at": "changed",
}
PARTS: TypeAdapter[list[Any]] = TypeAdapter(list[Part])
FORMATS = ("markdown", "notebook")
MOST = 500
"""The most turns that are shown; an export has all."""


target: Callable[[Fn], Fn] = click.argument(
    "conversation_id", metavar="CONVERSATION", shell_complete=offers.conversations
)
"""The argument of commands about one conversation."""


@dataclass(frozen=True, repr=False)
class ShownConversation(Text):
    """A conversation as it is shown: its turns, oldest first."""

    markup: str = ""

    def _repr_html_(self) -> str:
        return self.markup


def read_conversation(caller: ConversationCaller, conversation_id: str) -> ShownConversation:
    """A conversation with its newest turns.

    Raises:
        NotFound: ``CONVERSATION_NOT_FOUND``.
    """
    about = caller.call("get_conversation", conversation_id=conversation_id)
    turns = caller.call("list_turns", conversation_id=conversation_id, limit=MOST)["turns"]
    title = about["title"] or "An empty conversation"
    text = "\n\n".join([title, *map(_turn_text, turns)])
    pictures = Pictures(caller.call)
    markup = f"<h4>{as_html(title)}</h4>" + "".join(_turn_html(turn, pictures) for turn in turns)
    return ShownConversation(text, {**about, "turns": turns}, markup=markup)


@root.group(cls=NounGroup)
def conversations() -> None:
    """Conversations with models: list, show, retry, stop, rename, export, delete. `chat` begins and continues them."""


@view("Conversations")
def _conversations(page: dict[str, Any]) -> Shown:
    rows = [conversation | _facts(conversation) for conversation in page["conversations"]]
    note = "There are more; --limit or --search shows them." if page["next_cursor"] else ""
    return Table.of(rows, COLUMNS, "There are no conversations. `workbench chat` begins one.", page, note)


@conversations.command("show")
@target
@pass_client
def show_conversation(client: OperatorClient, conversation_id: str) -> Shown:
    """Show the turns of a conversation."""
    return read_conversation(client, conversation_id)


@conversations.command()
@target
@pass_client
def retry(client: OperatorClient, conversation_id: str) -> Shown:
    """Ask the last question of a conversation again, and print the answer."""
    print_answer(client, Answer.retried(client, conversation_id))
    return None


@conversations.command()
@target
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default=None, help="By default markdown, or as FILE says."
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead.")
@pass_client
def export(client: OperatorClient, conversation_id: str, form: str | None, output: Path | None) -> Shown:
    """Print a conversation as Markdown or as a notebook, or save it."""
    file_format = form or ("notebook" if output and output.suffix == ".ipynb" else "markdown")
    exported = client.call("export_conversation", conversation_id=conversation_id, format=file_format)
    if output is None:
        return Text(exported["content"].rstrip("\n"), exported)
    try:
        output.write_text(exported["content"], "utf-8", newline="")
    except OSError as error:
        raise output_unwritable(str(output), error) from None
    return Note(f"Saved the conversation to {output}.", exported)


@conversations.command()
@click.argument(
    "conversation_ids", metavar="CONVERSATION...", nargs=-1, required=True, shell_complete=offers.conversations
)
@click.option("--yes", is_flag=True, help="Delete without a question.")
@pass_client
def delete(client: OperatorClient, conversation_ids: tuple[str, ...], yes: bool) -> Shown:
    """Delete conversations with their turns. The calls of their tools stay recorded."""
    confirmed(f"{counted(len(conversation_ids), 'conversation')} and all turns will be deleted.", yes)
    deleted = [
        client.call("delete_conversation", conversation_id=conversation_id) for conversation_id in conversation_ids
    ]
    return Note(f"Deleted {counted(len(deleted), 'conversation')}.", deleted)


def _facts(conversation: Mapping[str, Any]) -> dict[str, Any]:
    """The definition or model of a conversation, and the tokens it has used, where they were reported."""
    usage = conversation["usage"]
    tokens = [usage["input_tokens"], usage["output_tokens"]]
    return {
        "with": conversation["definition"] or conversation["model"],
        "used": None if None in tokens else sum(tokens),
        "cost": None if usage["cost_usd"] is None else f"${usage['cost_usd']:.4f}",
    }


def _turn_text(turn: Mapping[str, Any]) -> str:
    if turn["role"] == "user":
        return "\n".join(f"> {line}" for line in turn["content"].splitlines())
    lines = [*map(as_text, PARTS.validate_python(turn["parts"])), ending(turn)]
    return "\n".join(filter(None, lines))


def _turn_html(turn: Mapping[str, Any], pictures: Pictures) -> str:
    if turn["role"] == "user":
        return f'<blockquote style="white-space: pre-wrap">{as_html(turn["content"])}</blockquote>'
    end = f"<p><em>{as_html(ending(turn))}</em></p>" if ending(turn) else ""
    return "".join(as_page(part, pictures.of(part)) for part in PARTS.validate_python(turn["parts"])) + end
